"""Rules about code are about what is run, not about what a text in quotation marks names."""

import re
import time

import pytest

from holdfast.measures import build
from holdfast.measures.agent_acts.edits.comments import without_comments
from holdfast.measures.agent_acts.edits.quoted_code import without_quoted_code
from holdfast.measures.agent_acts.git.git_branches import may_change_branch
from holdfast.measures.agent_acts.programs.javascript_programs import read_javascript
from holdfast.measures.turns import AssistantTurn, ToolCall

PRINT = r"(?<![\w$.])print\("
LOG = r"(?<![\w$])console\.log\b"
# a pattern, a file, a text, and whether the text keeps the rule that the pattern may not be written
ROWS = [
    (PRINT, "a.py", 'say("print(x)")\n', True),
    (PRINT, "a.py", "x = 1  # print(x)\n", True),
    (PRINT, "a.py", 'def f():\n    """Calls print(x)."""\n', True),
    (PRINT, "a.py", 'def f():\n    """Calls\n    print(x).\n    """\n', True),
    (PRINT, "a.py", "x = f\"{print('a')}\"\n", False),
    (PRINT, "a.py", 'print("x")\n', False),
    (PRINT, "a.py", 'say("x"); print("y")\n', False),
    (LOG, "a.ts", 'expect(text).toContain("console.log(1)");\n', True),
    (LOG, "a.ts", "expect(text).toContain('console.log');\n", True),
    (LOG, "a.ts", "const x = `console.log(1)`;\n", True),
    (LOG, "a.ts", "const x = `${console.log(1)}`;\n", False),
    (LOG, "a.tsx", "<p>Don't</p>{console.log(1)}<p>it's</p>\n", False),
    (r"\bdbg!\(", "a.rs", 'let x = "dbg!(y)";\n', True),
    (r"\bdbg!\(", "a.rs", "fn f<'a>(x: &'a str, y: &'a str) { dbg!(x); }\n", False),
    (r"\.unwrap\(\)", "a.rs", 'panic!("called .unwrap() on None");\n', True),
    (r"fmt\.Print", "a.go", 't.Error("fmt.Println is forbidden")\n', True),
    (r"System\.out", "A.java", 'assertThat(x).contains("System.out.println(");\n', True),
    (r"System\.out", "A.java", "System.out.println('x');\n", False),
    # texts that rules may be about
    (r"https?://", "a.py", 'get("http://a.b/c")\n', False),
    (r"#[0-9a-f]{6}\b", "a.ts", "const x = '#ff0000';\n", False),
    (r"\brgb\(", "a.ts", "const x = 'rgb(0, 0, 0)';\n", False),
    ("—", "a.py", 'say("a — b")\n', False),
    (r"SELECT \*", "a.py", 'run("SELECT * FROM a")\n', False),
    (r"NOW\(", "a.py", 'run("SELECT NOW()")\n', False),
    (r"\bnow\(", "a.py", 'run("select now() from a")\n', False),
    (r"\bcount\(", "a.ts", "await db.query(`SELECT count(*) FROM a`);\n", False),
    (r"\brandom\(", "a.go", 'db.Exec("update a set x = random()")\n', False),
    (r"\beval\(", "a.py", 'say("select from the menu: eval(x)")\n', True),
    (r"\btranslateX\(", "a.tsx", "const s = { transform: 'translateX(4px)' };\n", False),
    (r"\blinear-gradient\(", "a.ts", "const x = 'linear-gradient(red, blue)';\n", False),
    (r"""from\s+["']lodash""", "a.ts", "import x from 'lodash';\n", False),
    (PRINT, "a.unknown", 'say("print(x)")\n', False),
]


@pytest.mark.parametrize(("pattern", "path", "text", "is_kept"), ROWS)
def test_code_that_a_text_names_is_not_written(pattern, path, text, is_kept):
    turn = AssistantTurn("", (ToolCall("Write", {"file_path": path, "content": text}),))
    score = build({"name": "code_not_written", "pattern": pattern}).score_turn(turn)
    assert score.value == is_kept


def test_a_mark_that_ends_a_docstring_begins_none():
    old, new = "x = 1", 'the end.\n"""\nprint(1)\n\ndef g():\n    """Next."""'
    edit = ToolCall("Edit", {"file_path": "a.py", "old_string": old, "new_string": new})
    measure = build({"name": "code_not_written", "pattern": PRINT})
    assert measure.score_turn(AssistantTurn("", (edit,))).value == 0


def test_a_long_text_in_quotation_marks_takes_no_time():
    text = f'x = "{"a" * 200_000}"; say("print(")'
    turn = AssistantTurn("", (ToolCall("Write", {"file_path": "a.py", "content": text}),))
    measure = build({"name": "code_not_written", "pattern": PRINT})
    assert measure.score_turn(turn).value == 1


@pytest.mark.parametrize(
    ("pattern", "path", "text"),
    [
        (r"console\.log", "a.js", 's.replace(/"/g, x); console.log("a");\n'),
        (r"console\.log", "a.js", "const y = `a ${console.log(x)}`;\n"),
        (r"Console\.Write", "a.cs", 'var p = @"C:\\"; Console.Write("x");\n'),
        (r"Console\.Write", "a.cs", 'var p = $"{Console.Write(1)}";\n'),
        (r"println\(", "a.kt", 'val p = "${println(1)}"\n'),
        (r"print\(", "a.swift", 'let p = "\\(print(1))"\n'),
    ],
)
def test_code_beside_texts_and_in_their_holes_is_found(pattern, path, text):
    assert re.search(pattern, without_quoted_code(text, path, is_whole=True))


def test_a_part_of_a_file_may_begin_within_a_template():
    part = "the end`;\nconsole.log(x);\nconst y = `abc`;\n"
    assert without_quoted_code(part, "a.js", is_whole=False) == part


LONG = 200_000
# each took quadratic time in one of the patterns, more than a minute
LONG_TEXTS = {
    "spaces of a query": "'select" + " " * LONG + "'",
    "words of a query": "'update" + " set" * (LONG // 4) + "'",
    "escaped marks": "\\'" * (LONG // 2),
    "words": "git " * (LONG // 4),
    "a word": "a" * LONG,
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_long_texts_take_no_quadratic_time(name):
    text = LONG_TEXTS[name]
    start = time.process_time()
    without_quoted_code(text, "a.js", is_whole=True)
    without_comments(text, "a.js")
    read_javascript(text[:50_000])
    may_change_branch(text)
    assert time.process_time() - start < 5
