"""Hooks of coding agents, which tell the model which rules it just broke or no longer has.

hook_command    `holdfast remind` as an agent calls it
hook_input      the JSON that the agent sends
reminding       finds what to say, from the part of the session since the last call (session_state)
hook_judge      judges a turn by the rules (hook_rules) in the time that a hook has
hook_answers    the words for the model, and the JSON that the agent reads
settings_files  adds the hooks to the settings of agents
"""
