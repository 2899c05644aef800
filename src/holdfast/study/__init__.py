"""Why models drift: the cone geometry of the theory, and of real hidden states; what the fixes
cost; and which heads to steer.
"""
