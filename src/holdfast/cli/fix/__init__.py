"""The commands that find a fix: calibrate, profile, fit."""
