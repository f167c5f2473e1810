"""Which tests run when: by `make check`, by `make test`, and by `make nightly`.

`make test` leaves out the tests that take long, and most of those that differ in nothing but parameters; `--nightly`
runs them, too. `--check` takes about a minute: it runs each test function with its first set of parameters, except for
those that take seconds or need a server, and one program on PostgreSQL.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

# If a test has more than MANY sets of parameters, the first and every SHAREth set after it run by day.
MANY, SHARE = 2, 64

# Tests that run only at night, as regular expressions of their names; similar tests run by day.
LONG = (
    r"test_array_functions.py::test_kernels_refuse_unknown_functions",
    r"test_bench_eindecomp.py::test_(classifiers|matrix_chains)_agree_with_the_paper",
    r"test_bench_paper_tables.py::test_rows",
    r"test_bench_peers.py::test_a_race_has_a_row",
    r"test_bench_paper_tables.py::test_every_constant_is_changed",
    r"test_calibration.py::test_a_server_is_measured",
    r"test_checked_kernels.py::test_indices_are_checked_if_asked",
    r"test_circuits.py::test_states_and_amplitudes.*postgresql",
    r"test_cli.py::test_calibrate_stores",
    r"test_cluster_search.py::test_no_decomposition_is_cheaper",
    r"test_cluster_search.py::test_small_work.*1000000000.0",
    r"test_concurrent_writers.py::test_(loading_and_keeping.*duckdb|programs_at_psql)",
    r"test_dbt_projects.py::test_the_plugin_refuses",
    r"test_deterministic_loops.py::test_training_gives_equal_bits.*duckdb",
    r"test_dumps_and_upgrades.py::test_(dumped_and_restored.*custom|a_standby_answers)",
    r"test_einsum_networks.py::test_large_networks.*60",
    r"test_interrupts.py::test_scans_are_interrupted",
    r"test_algebraic_rewriting.py::test_only_results_that_gain",
    r"test_gradients.py::test_gradients_at_entries",
    r"test_matched_rows.py::test_chosen_where_it_pays",
    r"test_results.py::test_to_sparse_has_any_number_of_axes",
    r"test_row_tiles.py::test_random_lengths",
    r"test_weights.py::test_any_weights",
    r"test_libraries.py::test_a_process_that_forks.*True",
    r"test_local_strategies.py::test_strategies_of_random_plans",
    r"test_compiling.py::test_a_damaged_file",
    r"test_compiling.py::test_a_(cache_that_cannot_be_written|disk_that_is_full|user_without_a_home)",
    r"test_compiling.py::test_older_files_are_removed",
    r"test_compiling.py::test_what_is_lost",
    r"test_concurrent_writers.py::test_runs_see_one_state.*-True-",
    r"test_dbt_models.py::TestAnyProgram",
    r"test_dbt_projects.py::test_(on_postgresql|models_for_another_engine|without_the_plugin)",
    r"test_duckdb_extension.py::test_a_file_for_another_processor",
    r"test_documentation.py::test_page\[docs/pipelines.md",
    r"test_einsum_of_sparse.py::test_formats\[(csc|bsr|dia|lil|dok|coo)_matrix",
    r"test_extending.py::test_records_in_a_database",  # compiles kernels
    r"test_extending.py::test_(records_as_typed\[aggregates|changes_as_typed\[engines)",
    r"test_interrupts.py::test_a_connection_works_after_an_interrupt.*pg_sleep",
    r"test_interrupts.py::.*\[(lines|gemm)\]",
    r"test_libraries.py::test_(a_library_for_each|every_object).*\[x86-64-v2",  # compiles for another processor
    r"test_libraries.py::test_kernels_of_each_processor_compute_the_same",
    r"test_libraries.py::test_a_library_that_the_system_refuses",
    r"test_libraries.py::test_(without_a_linker|exceptions_of_duckdb_pass_through_kernels\[preparation)",
    r"test_libraries.py::test_the_demo_on_each_processor",
    r"test_matrix_products.py::test_labels",  # compiles kernels
    r"test_memory_limit.py::test_peak_stays_below_the_limit",
    r"test_natural_keys.py::test_random_products.*postgresql",
    r"test_notebooks.py::test_cells_show_what_the_page_shows\[(index|recipes)",
    r"test_optimizers.py::(.*many_with_tiles_of_every_kind|TestSharedResults::test_best_plans_are)",
    r"test_output.py::test_readers_may_stop.*options1",
    r"test_postgres_crashes.py::test_server_process_killed",
    r"test_postgres_extension.py::test_build_for_every_version\[1[567]",
    r"test_postgres_extension.py::test_a_library_for_another_processor",
    r"test_random_loops.py::test_random_loops.*postgresql",
    r"test_shared_products.py::test_products_of_statements_are_numpys",
    r"test_tuple_values.py::test_more_tuples_than_fit_into_a_value.*tuples",
    r"test_progress.py::test_(notebooks_update_a_line|a_terminal_shows_the_share)",
    r"test_random_language.py::test_results_are_numpys\[duckdb-.*-(relational|greedy|dense)",
    r"test_random_language.py::test_results_are_numpys\[duckdb-(float32|int64|bool)-dp",
    r"test_random_sql.py::test_sql_by_hand\[(bool|float|int)",
    r"test_repartition_tables.py::test_costs_in_a_table_equal_single_costs",
    r"test_replanning.py::test_results_beyond_memory_are_computed_in_passes",
    r"test_replanning.py::test_results_are_numpys_however.*\[(int64|complex|bool|float32)",
    r"test_rewrite.py::test_hundreds_of_operands",
    r"test_saved_plans.py::test_random_plans_are_read_back\[(int64|complex|bool|float32)",
    r"test_stopped_loops.py::test_a_killed_loop_that_kept_nothing.*postgresql",
    r"test_threads.py::test_databases_of_one_connection",
    r"test_threads.py::test_asyncio",
    r"test_threads.py::test_processes_read_one_file",
    r"test_user_aggregates.py::test_results_do_not_depend.*\[duckdb-(bool|float32|int64)",
    r"test_user_functions.py::test_registered_before_any_other_import",
    r"test_wheels.py",  # after `make wheel`
)
_LONG = re.compile("|".join(LONG))

# Fixtures that take seconds: servers, and the extension file for DuckDB's command line.
SERVERS = {"postgres", "postgres_python", "cluster", "shell"}

# Tests with a server that `--check` runs.
ON_SERVERS = ("test_tiles.py::TestText::test_promotes_and_delivers[postgresql]",)

# Number of tests with the fixture of a database that it runs of each module.
WITH_DATABASE = 1

# Modules that it leaves out, as regular expressions of their names: each of their tests takes a second or more.
SLOW_MODULES = (
    r"random",
    r"test_bench_",
    r"test_(calibration|checked_kernels|compiling|concurrent_writers|dbt_projects|documentation|extending)\.py",
    r"test_(interrupts|libraries|memory_limit|picture|threads|user_aggregates|user_function_kernels|wheels)\.py",
    r"test_(deterministic_loops|every_decomposition|notebooks|one_number|plan_search|semirings|stopped_loops)\.py",
    r"test_matrix_products\.py",  # kernels that numba compiles in the process
)
_SLOW_MODULES = re.compile("|".join(SLOW_MODULES))

# Tests that it leaves out because they take a second or more, as regular expressions of names.
SECONDS = (
    # Searches that are compared with an enumeration of all plans.
    r"_best_plans_are_the_best_of_all",
    r"every_decomposition",
    r"test_cluster_search.py::test_no_decomposition",
    r"test_eindecomp.py::TestSearch",
    r"test_implementation_algebra.py::test_(rules|table_1)",
    r"test_matched_rows.py::test_chosen",
    r"test_optimizers.py::TestSharedResults",
    r"test_explain.py::test_runners_up",
    r"test_partitioning.py::test_(the_objective|formulas|programs_stay)",
    r"test_plans_for_workers.py::test_(results_are|one_number|fewer_floats)",
    r"test_replay.py::test_(fewest_moves|costs_of_choices)",
    r"test_transfer_cost.py::test_(training_steps|search)",
    # Many random expressions, programs and data.
    r"random",
    r"test_algebraic_rewriting.py::test_a_(squared_distance|product_is)",
    r"test_collected_tuples.py::test_(tuples|memory)",
    r"test_(estimates|sketch).py::.*test_sizes_are_possible",
    r"test_first_match.py::test_(absent|sparse_searches)",
    r"test_loaded_measurements.py::test_arrays",
    r"test_(onnx|weights).py::test_any",
    r"test_python_expressions.py::test_(programs|long_programs|expressions)_",
    r"test_replanning.py::test_(results_are_numpys|larger)",
    r"test_rewrite.py::test_results_are_those",
    r"test_row_products.py::test_rows_of",
    r"test_saturation.py::test_(load_of|expressions_that)",
    # Many calls, large data, processes.
    r"test_catalogue.py::test_(connection_opened_before|looking_for|plan_runs_only)",
    r"test_circuits.py::test_states",
    r"test_(cli|training_demo).py::test_(demo|the_loss_falls)",
    r"test_compressed_lists.py::test_both_operands",
    r"test_contraction_paths.py::test_hundreds",
    r"test_dense_products.py::test_threads",
    r"test_deterministic_runs.py::test_programs_and_plans",
    r"test_dtypes.py::test_arrays_of_every_dtype",
    r"test_duckdb_extension.py::test_(a_file_for_another|what_cannot)",
    r"test_einsum.py::test_layouts",
    r"test_einsum_networks.py::test_(a_(star|chain|lattice)|large)",
    r"test_einsum_of_sparse.py::test_formats",
    r"test_einsum_options.py::test_many_operands",
    r"test_gpus.py::test_products_of_many",
    r"test_kept_operands.py::test_memory_is_released",
    r"test_logs.py::test_nothing_is_printed",
    r"test_matrix_text.py::test_the_(command_line|shell)",
    r"test_numpy_notation.py::test_meaning_of_any_call",
    r"test_output.py::test_(an_encoding|readers)",
    r"test_postgres_extension.py::test_what_cannot",
    r"test_result_formats.py::test_files",
    r"test_postgresql.py::test_a_server_that_does_not_answer",
    r"test_program_text.py::test_long_programs",
    r"test_results.py::test_to_sparse_has_any",
    r"test_saved_plans.py::test_functions_must",
    r"test_shell.py::test_prompt",
    r"test_sql_functions_of_programs.py::test_(many_databases|a_file_is_free)",
    r"test_sql_tiles.py::test_blocks",
    r"test_stored_einsum.py::test_joins",
    r"test_tracebacks.py::test_one_frame",
    r"test_user_functions.py::test_registered_before",
)
_SECONDS = re.compile("|".join(SECONDS))


def mark_nightly(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that run only at night."""
    tests = list(items)
    sets_of_parameters = Counter(_function(item) for item in tests)
    before: Counter[str] = Counter()
    for item in tests:
        function = _function(item)
        is_one_of_many = sets_of_parameters[function] > MANY and before[function] % SHARE
        before[function] += 1
        if is_one_of_many or _LONG.search(item.nodeid):
            item.add_marker("nightly")


def has_no_checked_test(module: Path) -> bool:
    """Whether `--check` leaves a module out, so that it need not be imported."""
    return _SLOW_MODULES.search(module.name) is not None


def is_checked(items: Iterable[pytest.Item]) -> list[bool]:
    """For each test, whether `--check` runs it."""
    seen: set[str] = set()
    with_database: Counter[Path] = Counter()
    checked = []
    for item in items:
        function, fixtures = _function(item), set(getattr(item, "fixturenames", ()))
        is_chosen = (
            function not in seen
            and SERVERS.isdisjoint(fixtures)
            and "[postgresql" not in item.nodeid
            and item.get_closest_marker("hypothesis") is None
            and not _SECONDS.search(item.nodeid)
            and not has_no_checked_test(item.path)
        )
        if is_chosen and "engine" in fixtures:
            with_database[item.path] += 1
            is_chosen = with_database[item.path] <= WITH_DATABASE
        seen.add(function)
        checked.append(is_chosen or any(name in item.nodeid for name in ON_SERVERS))
    return checked


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
