"""The databases of agents and libraries, a file each; `database_reading.py` tells which it is."""
