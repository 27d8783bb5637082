"""Which test shows each case of the threat model on real files and processes.

A test without the mark `ci` runs as root and as another user, a test that also has `wide` only as another user; of the
others, `AS_ANOTHER` names the files that `.ci/run` also runs as another user, and `BOTH` those whose tests, run by
root, give up root's rights themselves. `rungs` says whether a sandbox is involved: then the test runs with bubblewrap
and with Landlock. `IN_PROCESS` are cases that call the kernel's functions in the test's own process, on real files.
"""

from __future__ import annotations

from typing import NamedTuple

BOTH = ("sandbox/test_escapes.py",)
AS_ANOTHER = (
    "sandbox/test_fresh_folders.py",
    "sandbox/test_server_questions.py",
    "cli/test_mcp_tools.py",
)


class Case(NamedTuple):
    """`tests` are names in `file`, below `tests/`, without the prefix `test_`."""

    item: int
    what: str
    file: str
    tests: tuple[str, ...]
    rungs: bool = False


CLONES, FOREIGN, PROPERTY = "state/test_clones.py", "state/test_foreign_project.py", "state/test_generated_projects.py"
RECORD, SCRIPTS, FRESH = "sandbox/test_audit.py", "sandbox/test_shipped_scripts.py", "sandbox/test_fresh_folders.py"
ESCAPES, STANDING, PRIVATE = (
    "sandbox/test_escapes.py",
    "authority/test_standing_in_clones.py",
    "authority/test_private_sessions.py",
)
SERVERS, NAMES, LIMITS = (
    "sandbox/test_server_questions.py",
    "sandbox/test_names.py",
    "scanning/test_scan_limits.py",
)

CASES = (
    Case(1, "a session that grants *", CLONES, ("a_session_that_grants_everything_grants_nothing",)),
    Case(1, "a run granted *, resumed", CLONES, ("a_run_that_a_clone_contains_cannot_be_continued",)),
    Case(1, "a receipt that claims an official source", CLONES, (
        "an_official_origin_that_a_receipt_claims_is_not_shown_as_its_source",
        "trust_in_a_skill_whose_receipt_lies_is_bound_to_its_bytes_and_not_to_the_claim",
    )),
    Case(1, "a cache for an official address", CLONES, ("a_cache_that_a_clone_brings_is_not_taken_for_the_repository",)),
    Case(1, "update and install --frozen in a clone", CLONES, ("no_command_on_what_a_clone_locks_makes_trust",)),
    Case(1, "a bare name that the clone's page sends elsewhere", CLONES, (
        "a_bare_name_is_not_sent_where_the_page_of_a_clone_says",
    )),
    Case(1, "a root that another user marked, as root", FOREIGN, (
        "a_mark_that_another_user_left_above_makes_no_project",
        "commands_in_a_project_of_another_user_are_refused",
    )),
    Case(1, "a root that another user marked, as another user", FOREIGN, (
        "commands_in_a_folder_of_root_that_all_may_write_to_are_refused",
        "commands_in_a_clone_that_links_to_a_world_writable_folder_are_refused",
        "a_project_marker_that_links_to_a_world_writable_folder_is_ignored",
        "commands_in_a_folder_of_a_user_who_is_not_even_known_are_refused",
    )),
    Case(1, "a record that was edited and chained again", RECORD, (
        "a_record_that_was_edited_and_chained_again_is_seen",
    )),
    Case(1, "2,000 generated projects", PROPERTY, ("no_file_of_2000_projects_answers_a_question",)),
    Case(2, "a clone whose bin/ shadows a package", SCRIPTS, (
        "a_module_beside_a_clones_doctor_is_not_run_without_a_question",
    )),
    Case(2, "the same, where the person lets it run", SCRIPTS, (
        "a_clones_script_that_the_person_lets_run_is_contained",
    ), rungs=True),
    Case(2, "a step that plants an agent and a trust file", SCRIPTS, (
        "files_that_a_step_plants_in_its_home_do_not_reach_the_next_steps_doctor",
    ), rungs=True),
    Case(3, "a planted .pyc before the next step", FRESH, (
        "nothing_that_a_step_plants_takes_the_next_one_over",
        "files_of_the_previous_step_can_be_read_but_not_changed",
    ), rungs=True),
    Case(3, "a planted .pyc before a server with a token", FRESH, (
        "no_step_reaches_what_an_mcp_server_that_holds_a_token_imports",
        "bytecode_that_a_clone_brings_for_an_mcp_server_is_not_run",
    ), rungs=True),
    Case(3, "deep, long, closed and many files", FRESH, (
        "a_run_that_leaves_an_awkward_tree_is_recorded_as_ended_and_can_be_cleared",
    ), rungs=True),
    Case(3, "files without a name, against the limit of disk", FRESH, (
        "files_without_a_name_count_while_they_are_open",
    ), rungs=True),
    Case(3, "an MCP server that fills the disk", "sandbox/test_server_disk.py", (
        "a_server_over_the_limit_of_disk_is_killed_with_a_typed_error",
    ), rungs=True),
    Case(4, "limits, priorities, IPC, namespaces of others", ESCAPES, (
        "no_attempt_succeeds_and_each_denial_is_typed",
    ), rungs=True),
    Case(4, "processes that go on without their leader", ESCAPES, (
        "daemons_that_hide_are_dead_when_the_program_is",
        "a_process_whose_first_thread_has_ended_is_dead_too",
    ), rungs=True),
    Case(5, "a skill that is only in a clone", STANDING, (
        "a_skill_that_is_in_a_clone_asks_by_name_before_a_model_sees_it",
        "a_yes_to_a_skill_is_not_a_yes_to_its_tool_call",
        "a_skill_that_declares_no_tool_gets_none",
    ), rungs=True),
    Case(5, "its text, loaded by another skill's model", STANDING, (
        "the_text_of_a_skill_that_is_in_a_clone_is_loaded_by_no_other",
    )),
    Case(5, "a server that the clone names for its skill", STANDING, (
        "a_server_that_a_clone_names_is_not_started_for_its_skill",
    )),
    Case(5, "a tool's yes, bound to the skill's digest", STANDING, (
        "a_yes_for_the_session_ends_with_the_first_changed_byte_of_the_skill",
    ), rungs=True),
    Case(5, "a tool's yes, bound to what the tool is", STANDING, (
        "a_yes_for_the_session_ends_where_the_tool_says_something_else",
    ), rungs=True),
    Case(5, "a server's own hint that a tool only reads", STANDING, (
        "a_read_only_hint_from_a_server_does_not_skip_the_question",
    ), rungs=True),
    Case(5, "calls that go out after private data", PRIVATE, (
        "a_file_that_the_message_names_is_private_at_once",
        "after_a_tool_answer_every_later_turn_is_private",
        "after_reading_a_skill_or_a_file_the_next_turn_is_private",
        "a_clone_cannot_say_that_nothing_was_read",
        "answers_that_read_nothing_ask_no_further_question",
    ), rungs=True),
    Case(5, "--yes and calls of a model", STANDING, (
        "a_read_only_hint_from_a_server_does_not_skip_the_question",
        "yes_to_all_covers_what_the_message_itself_orders",
    ), rungs=True),
    Case(5, "what a question about a server shows", SERVERS, (
        "every_argument_and_value_is_shown_whatever_its_name",
        "a_file_is_named_by_its_real_path_and_its_folder_is_not_seen",
        "to_approve_a_server_of_the_project_shows_what_it_starts_first",
    )),
    Case(5, "a server sees the file that was named, never its folder", SERVERS, (
        "it_sees_the_file_that_was_named_and_nothing_else",
    ), rungs=True),
    Case(6, "texts that hold the scanners up", LIMITS, ("a_scan_that_takes_too_long_is_stopped_and_the_next_skill_is_scanned",)),
    Case(6, "1 MiB of comments before the harm", LIMITS, (
        "harmful_code_behind_long_comments_is_found_and_the_skill_is_not_installed",
        "a_skill_that_was_not_looked_at_whole_asks_before_it_runs",
    )),
    Case(6, "text that holds redaction up", "adapters/test_redaction_limits.py", (
        "a_megabyte_that_nearly_contains_secrets_is_done_or_withheld_in_time",
    )),
    Case(6, "a pack without end", "adapters/test_git_intake.py", ("a_server_that_sends_on_is_killed_at_the_limit",)),
    Case(6, "HTTP: headers, connections, Host and Origin", "mcp_server/test_http_limits.py", (
        "a_client_that_sends_half_a_header_is_dropped",
        "a_connection_over_the_limit_is_refused_until_others_end",
        "every_host_but_the_one_it_was_started_with_is_refused",
        "a_page_of_another_port_of_this_machine_is_refused",
    )),
    Case(6, "a file's name that forges a line", NAMES, (
        "a_file_name_forges_no_line_of_the_reply_or_the_log",
        "no_command_prints_a_line_that_a_name_forges",
    )),
    Case(6, "a long message that hides what ran", RECORD, ("a_long_message_does_not_hide_what_ran",)),
    Case(6, "a skill that is a link out of its folder", "sandbox/test_secrets_hidden.py", (
        "a_skill_whose_text_is_a_link_out_of_its_folder_is_not_read",
        "a_file_that_a_parameter_names_is_refused_as_by_at",
    )),
)  # fmt: skip

IN_PROCESS = (
    Case(1, "a project's identity", "state/test_project_state.py", (
        "another_project_in_the_same_place_does_not_get_the_state_of_the_first",
    )),
    Case(5, "each rule of the fence by itself", "tools/test_standing.py", (
        "no_tool_of_an_unknown_skill_runs_without_that_yes",
        "after_private_data_whatever_goes_outward_asks_for_just_this_call",
    )),
    Case(6, "rules whose time is quadratic", "scanning/test_scan_growth.py", (
        "repeated_needles_and_near_matches_of_a_rule_take_time_in_proportion",
    )),
)  # fmt: skip
