"""Why models drift: the cone geometry of the theory, and of real hidden states; and which heads to steer."""
