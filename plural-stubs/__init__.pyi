from plural_gym import *
