"""Values from outside are checked, and refused in a sentence."""
