"""The files that a rule about a change names: "any file in `src/`", "the Prisma schema"."""

import re

from holdfast.drafting.clauses import all_or_none, names_in
from holdfast.drafting.code_tokens import files_of_language
from holdfast.drafting.forms import CODES, any_words, forms, one_of, whole_match
from holdfast.drafting.path_globs import path_glob

_CHANGING = one_of(
    *("chang(?:e[sd]?|ing)", "modif(?:y|ying|ies|ied)", "edit(?:s|ing|ed)?", "touch(?:ing|ed)?"),
    *("updat(?:e[d]?|ing)", "add(?:ing|ed)?", "creat(?:e[d]?|ing)", "mak(?:e|ing)", "made"),
    *("writ(?:e|ing)", "wrote", "alter(?:ing|ed)?", "implement(?:ing|ed)?", "renam(?:e[d]?|ing)"),
    *("remov(?:e[d]?|ing)", "delet(?:e[d]?|ing)", "complet(?:e[d]?|ing)", "finish(?:ing|ed)?"),
    *("bump(?:ing|ed)?", "regenerat(?:e[d]?|ing)"),
)
CHANGING = rf"{_CHANGING}(?:(?:, (?:or )?|/| or | and ){_CHANGING})*"
SOMEBODY = r"(?:(?:you|we|you['’]ve|you have|having|are) )?"

_CODE_FILES = ["*", "!*.{md,mdx,txt,rst}"]
_ANY_CODE = forms(
    {
        "all source files in this repo": (
            any_words(*"any every each the your all some new existing production".split())
            + r"(?:code|source(?: code| files?)?|(?:code|source) (?:changes?|files?))"
            r"(?: (?:changes?|edits?|files?|in this repo))?"
        )
    }
)
_ANY_CHANGE = forms(
    {
        "any significant change": (
            any_words(*"any the your all every each a file making significant".split())
            + r"(?:changes?|files?|edits?|modifications?)"
        )
    }
)
_USUAL_FILES = (
    (
        forms(
            {
                "project dependencies": (
                    r"(?:any |the |new |project )*(?:dependency|dependencies)(?: versions?)?"
                )
            }
        ),
        ["{package.json,pyproject.toml,Cargo.toml,go.mod,requirements*.txt,Gemfile}"],
    ),
    (forms({"the Prisma schema": r"(?:the |any )*Prisma schema"}), ["*schema.prisma"]),
    (
        forms({"proto definitions": r"(?:the |any )*(?:proto|protobuf)(?: files?| definitions?)?"}),
        ["*.proto"],
    ),
)
_BEFORE_NAMES = re.compile(
    r"^(?:to |in |of )?(?:any |the |files? (?:in|under) |anything (?:in|under) |code in |all |new"
    r" |a |an )*(?:changes? (?:to|in|under) )?",
    re.I,
)
_CODES_OF_FILES = re.compile(rf"{CODES}(?: files?| folder| directory| schemas?| definitions?)?")
_BARE_PATH = re.compile(r"(?:[\w.@-]+/)+\*{0,2}|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md)")
_OF_ONE_LANGUAGE = re.compile(r"\S+(?: (?:code|files?|changes?|sources?|source files?))?")


def globs_of_change(text: str) -> list[str] | None:
    """The globs of the files that words such as "any file in `src/`" name; None if the words name
    no files, or may name something else.
    """
    text = text.strip(" ,.")
    plain = _BEFORE_NAMES.sub("", text) or text
    parts = re.split(r",? or (?:any |the )?|,? and (?:any |the )?|, ", plain)
    if len(parts) > 1 and not _CODES_OF_FILES.fullmatch(plain):
        globs_by_part = all_or_none([globs_of_change(part) for part in parts])
        return [glob for globs in globs_by_part for glob in globs] if globs_by_part else None
    if _CODES_OF_FILES.fullmatch(plain):
        names = [name for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", plain)) if is_code]
        # `.proto` stands for all files with this ending
        return all_or_none([path_glob(re.sub(r"^(?=\.\w+$)", "*", name)) for name in names])
    if _BARE_PATH.fullmatch(plain):
        glob = path_glob(plain)
        return [glob] if glob else None
    if whole_match(_ANY_CODE, plain):
        return _CODE_FILES
    if whole_match(_ANY_CHANGE, plain):
        return ["*"]
    for ways, globs in _USUAL_FILES:
        if whole_match(ways, plain):
            return globs
    if not _OF_ONE_LANGUAGE.fullmatch(plain):
        return None
    return files_of_language(plain) or None
