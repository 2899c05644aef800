"""Studies of a model: calibration and checks of methods, decay of attention, fitted directions."""
