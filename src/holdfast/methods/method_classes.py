"""One row for each method, in the order of `holdfast methods`.

The commands, the exports of `holdfast` and `holdfast.methods`, the tables in the documents and the
parametrised tests are all made from these rows.
"""

# ruff: isort: skip_file
from holdfast.methods.attention import SplitSoftmax as SplitSoftmax
from holdfast.methods.attention import Pasta as Pasta
from holdfast.methods.attention import Boost as Boost
from holdfast.methods.attention import Spotlight as Spotlight
from holdfast.methods.attention import Attenuate as Attenuate
from holdfast.methods.hold import Hold as Hold
from holdfast.methods.repetition import Repetition as Repetition
from holdfast.methods.reminder import Reminder as Reminder
from holdfast.methods.repair import Repair as Repair
from holdfast.methods.retry import CheckAndRetry as CheckAndRetry
from holdfast.methods.contrast import Guidance as Guidance
from holdfast.methods.contrast import AdaCad as AdaCad
from holdfast.methods.contrast import PromptStrength as PromptStrength
from holdfast.methods.contrast import Anchoring as Anchoring
from holdfast.methods.keys import Seka as Seka
from holdfast.methods.keys import Prism as Prism
from holdfast.methods.residual import Capping as Capping
from holdfast.methods.residual import Vector as Vector
