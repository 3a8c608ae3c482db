"""`python -m plural_gym`: the command `plural`."""

from plural_gym.cli.main import run

if __name__ == "__main__":
    run()
