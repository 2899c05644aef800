"""Hooks of coding agents, which tell the model which rules it just broke or no longer has.

    the agent's JSON -> HookInput -> the session's transcript -> rules just broken -> HookAnswer

hook_command       what a call of a hook runs, from standard input to the exit code
hook_input         the JSON that the agent writes; hook_answers, what it gets back
reminding          finds the rules that were just broken, or that left the context
hook_rules         the rules of a suite that a hook can judge; hook_judge judges turns by them
session_orders     whether the user ordered what a rule forbids
session_state      what is remembered between two calls
settings_files     adds the hooks to the agent's settings
"""
