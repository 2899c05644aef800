"""The readers of rules for coding agents, in the order in which they are asked.

    Clause("use pnpm, not npm") -> ... -> replacement_rule -> [Draft(command_not_run)]

The first reader that returns a rule decides, so a reader of a narrow wording comes before one of a
wider wording.
"""

from collections.abc import Callable

from holdfast.drafting.agent_rules.asking_rules import ask_rule
from holdfast.drafting.agent_rules.checklist_rules import (
    block_below_sentence,
    checklist_rule,
    labelled_command_rule,
    step_rule,
)
from holdfast.drafting.agent_rules.code_rules import code_rule
from holdfast.drafting.agent_rules.command_rules import (
    agent_tool_rule,
    dependency_rule,
    forbidden_command_rule,
    option_rule,
    package_manager_rule,
    preference_rule,
    replacement_rule,
    tool_rule,
    wrapper_rule,
)
from holdfast.drafting.agent_rules.commit_form_rules import (
    commit_form_rule,
    commit_shape_rule,
    unwanted_prefix_rule,
    wanted_prefix_rule,
)
from holdfast.drafting.agent_rules.commit_rules import (
    commit_type_rule,
    conventional_commit_rule,
    unwanted_type_rule,
)
from holdfast.drafting.agent_rules.file_rules import (
    committed_file_rule,
    generated_file_rule,
    labelled_file_rule,
    only_files_rule,
    protected_file_rule,
)
from holdfast.drafting.agent_rules.git_rules import (
    amend_rule,
    branch_name_rule,
    comment_rule,
    commit_branch_rule,
    forced_push_rule,
    git_act_rule,
    hook_rule,
    push_rule,
)
from holdfast.drafting.agent_rules.header_rules import header_rule
from holdfast.drafting.agent_rules.import_rules import (
    import_ending_rule,
    import_place_rule,
    import_rule,
)
from holdfast.drafting.agent_rules.kept_text_rules import kept_text_rule
from holdfast.drafting.agent_rules.naming_rules import (
    environment_name_rule,
    file_name_rule,
    folder_name_rule,
    generic_file_rule,
    interface_prefix_rule,
    language_rule,
    naming_rule,
    new_file_rule,
)
from holdfast.drafting.agent_rules.pull_request_rules import (
    pr_base_rule,
    pr_body_rule,
    pr_draft_rule,
    pr_title_rule,
)
from holdfast.drafting.agent_rules.run_rules import run_rule
from holdfast.drafting.agent_rules.style_rules import (
    component_rule,
    indentation_rule,
    line_length_rule,
    quotes_rule,
    style_list_rule,
    type_hint_rule,
)
from holdfast.drafting.agent_rules.together_rules import together_rule
from holdfast.drafting.agent_rules.trailer_rules import (
    attribution_rule,
    co_author_rule,
    sign_off_rule,
    trailer_rule,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause

# reads the rules that a clause states; [] if it states none of the reader's kind
ClauseReader = Callable[[Clause], list[Draft]]

AGENT_READERS: tuple[ClauseReader, ...] = (
    ask_rule,
    run_rule,
    labelled_command_rule,
    checklist_rule,
    step_rule,
    block_below_sentence,
    replacement_rule,
    preference_rule,
    agent_tool_rule,
    tool_rule,
    wrapper_rule,
    dependency_rule,
    forbidden_command_rule,
    push_rule,
    commit_branch_rule,
    forced_push_rule,
    hook_rule,
    amend_rule,
    option_rule,
    git_act_rule,
    comment_rule,
    branch_name_rule,
    protected_file_rule,
    generated_file_rule,
    labelled_file_rule,
    only_files_rule,
    pr_title_rule,
    pr_base_rule,
    pr_draft_rule,
    pr_body_rule,
    conventional_commit_rule,
    commit_type_rule,
    commit_shape_rule,
    co_author_rule,
    attribution_rule,
    trailer_rule,
    sign_off_rule,
    commit_form_rule,
    wanted_prefix_rule,
    unwanted_prefix_rule,
    unwanted_type_rule,
    committed_file_rule,
    package_manager_rule,
    style_list_rule,
    component_rule,
    code_rule,
    import_rule,
    import_place_rule,
    import_ending_rule,
    line_length_rule,
    indentation_rule,
    quotes_rule,
    type_hint_rule,
    naming_rule,
    file_name_rule,
    folder_name_rule,
    interface_prefix_rule,
    environment_name_rule,
    language_rule,
    generic_file_rule,
    new_file_rule,
    together_rule,
    kept_text_rule,
    header_rule,
)
RUN_READERS: tuple[ClauseReader, ...] = (run_rule, labelled_command_rule, checklist_rule, step_rule)
# these readers take a condition, or an exception, as a part of the rule
CONDITION_READERS: tuple[ClauseReader, ...] = (ask_rule, *RUN_READERS)
