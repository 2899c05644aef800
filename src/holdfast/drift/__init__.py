"""The benchmark of Li et al. (2024): how well an agent keeps to its prompt over a conversation."""

from holdfast.drift.asking_baseline import ask_baseline
from holdfast.drift.benchmark import run
from holdfast.drift.cases import CATEGORIES, Case, Persona, Rule, Suite
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.drift.suites import load_suite
