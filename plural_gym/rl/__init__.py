"""The RL face: spaces, `GymEnv` and registration with Gymnasium."""
