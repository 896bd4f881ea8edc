"""Loaded by the process that workers are forked from: all they need, used once, so that their first answer is quick."""

from latentpde.web.models import OPENING
from latentpde.web.tasks import TASKS, prepare

prepare()
TASKS["picture"](None, scene=OPENING.model_dump())
