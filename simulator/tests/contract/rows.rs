//! The rows of the platform's specification, and the tests that stand for them.
//!
//! The list is kept by hand, in the order of the specification; the test below holds that every row has tests and that they exist.

const SOURCES: [&str; 14] = [
    include_str!("computes.rs"),
    include_str!("console.rs"),
    include_str!("errors.rs"),
    include_str!("faults.rs"),
    include_str!("full_computes.rs"),
    include_str!("full_keys.rs"),
    include_str!("full_lists.rs"),
    include_str!("full_projects.rs"),
    include_str!("full_sizes.rs"),
    include_str!("keys.rs"),
    include_str!("lifecycle.rs"),
    include_str!("limits.rs"),
    include_str!("operations.rs"),
    include_str!("projects.rs"),
];

#[rustfmt::skip]
const ROWS: &[(&str, &[&str])] = &[
    ("service 2: bearer token", &["error_api_key_invalid_is_401"]),
    ("service 3: three kinds of key", &["key_type_personal_reaches_personal_projects_and_organizations_by_org_id"]),
    ("service 4: one primary and any number of replicas", &["compute_type_at_most_one_read_write_and_several_replicas_a_branch"]),
    ("service 5: size, range and scale to zero", &["size_table_rows", "compute_state_active_stays_active_when_scale_to_zero_is_disabled"]),
    ("service 6: changes create operations", &["update_compute_returns_endpoint_and_operations"]),
    ("service 7: keys in the console, secret once", &["console_lists_and_creates_keys"]),
    ("key: fields", &["api_key_fields"]),
    ("key type: personal", &["key_type_personal_reaches_personal_projects_and_organizations_by_org_id", "key_type_personal_may_have_to_name_the_organization_everywhere"]),
    ("key type: organization", &["key_type_organization_reaches_all_its_projects_without_org_id_and_no_personal_ones"]),
    ("key type: project-scoped", &["key_type_project_scoped_reaches_one_project_only", "key_type_project_scoped_performs_no_organization_actions", "key_type_project_scoped_creates_and_deletes_no_projects"]),
    ("key: project-scoped loses access on transfer", &["key_project_scoped_loses_access_when_its_project_is_transferred"]),
    ("project: fields", &["project_fields", "project_fields_other_than_those_listed_are_not_in_minimal"]),
    ("compute: fields", &["compute_fields", "compute_fields_other_than_those_listed_are_not_in_minimal"]),
    ("compute: pending_state", &["compute_pending_state_is_present_while_a_change_is_under_way"]),
    ("compute: settings", &["compute_settings_contains_pg_settings"]),
    ("compute: last_active", &["compute_last_active_is_absent_on_a_newly_created_compute"]),
    ("compute: in the console", &["console_shows_computes_with_type_status_size_and_last_active"]),
    ("operation: fields", &["operation_fields", "operation_fields_other_than_those_listed_are_not_in_minimal"]),
    ("sizes: table", &["size_table_rows"]),
    ("key state: none, create", &["key_state_none_create_key_becomes_active_and_secret_is_returned_once"]),
    ("key state: active, revoke", &["key_state_active_revoke_is_immediate_and_every_later_request_is_401"]),
    ("key state: revoked, any", &["key_state_revoked_cannot_be_reactivated"]),
    ("key: no expiry", &["keys_have_no_expiry"]),
    ("compute state: none, create", &["compute_state_none_create_becomes_init_with_pending_state_active"]),
    ("compute state: idle, activity", &["compute_state_idle_any_activity_becomes_active", "compute_state_idle_activity_occurs_as_a_start_compute_operation"]),
    ("compute state: active, inactivity", &["compute_state_active_inactivity_of_5_minutes_becomes_idle", "compute_state_active_inactivity_occurs_as_a_suspend_compute_operation"]),
    ("compute state: any, new branch", &["compute_state_any_move_keeps_its_state_with_pending_state_idle"]),
    ("compute state: any, restart", &["compute_state_any_restart_is_suspended_then_started_again", "compute_state_idle_or_init_restart_is_accepted_in_minimal"]),
    ("compute state: any, delete", &["compute_state_any_delete_is_removed", "delete_compute_that_is_active_returns_no_operations_in_minimal"]),
    ("settings change 1, 2 and 4", &["settings_change_1_and_2_size_changes_restart_and_interrupt"]),
    ("settings change 3", &["settings_change_3_automatic_resize_interrupts_nobody"]),
    ("settings change 5", &["settings_change_5_a_compute_that_never_suspends_gets_updates_by_restart"]),
    ("endpoint: create project-scoped key", &["create_project_scoped_key_needs_a_personal_key_of_an_administrator", "create_project_scoped_key_takes_key_name_and_a_project_of_the_organization"]),
    ("endpoint: list projects", &["list_projects_without_query_lists_all_in_minimal"]),
    ("endpoint: create compute", &["create_compute_returns_endpoint_and_operations", "create_compute_needs_an_existing_branch_and_a_known_type"]),
    ("endpoint: list computes", &["list_computes"]),
    ("endpoint: update compute", &["update_compute_returns_endpoint_and_operations", "update_compute_cannot_move_to_a_branch_with_a_primary", "update_compute_leaves_what_is_not_sent"]),
    ("endpoint: delete compute", &["delete_compute_returns_endpoint_and_no_operations"]),
    ("endpoint: restart compute", &["restart_compute_is_accepted_without_a_body"]),
    ("endpoint: gaps", &["gaps_in_the_endpoint_set_are_gaps_in_minimal", "create_compute_ignores_unknown_attributes"]),
    ("authentication 1 and 2", &["error_authorization_header_missing_is_401", "error_api_key_invalid_is_401", "error_api_key_revoked_is_401"]),
    ("authentication 3", &["the_first_key_is_made_in_the_console"]),
    ("authentication 4 and 5", &["create_project_scoped_key_needs_a_personal_key_of_an_administrator"]),
    ("authentication 6", &["revoke_organization_key", "revoke_reaches_only_keys_of_the_same_account"]),
    ("authentication 7", &["key_type_personal_reaches_personal_projects_and_organizations_by_org_id"]),
    ("authentication 8", &["key_state_none_create_key_becomes_active_and_secret_is_returned_once"]),
    ("error: header missing", &["error_authorization_header_missing_is_401"]),
    ("error: key invalid", &["error_api_key_invalid_is_401"]),
    ("error: key revoked", &["error_api_key_revoked_is_401"]),
    ("error: temporary storage full", &["error_temporary_storage_full_is_sqlstate_53100"]),
    ("limit: keys per account", &["limit_api_keys_per_account_is_not_strict"]),
    ("limit: fixed size", &["limit_fixed_compute_size_is_025_to_56_cu"]),
    ("limit: autoscaling range", &["limit_autoscaling_range_is_025_to_16_cu"]),
    ("limit: shared compute", &["size_table_rows"]),
    ("limit: free plan", &["limit_free_plan_compute_is_1_gb_in_minimal"]),
    ("limit: paid plans", &["limit_larger_sizes_and_autoscaling_are_on_paid_plans"]),
    ("limit: primaries", &["limit_primary_read_write_computes_per_branch_is_1"]),
    ("limit: replicas", &["limit_read_replicas_per_branch_is_multiple"]),
    ("limit: inactivity period", &["limit_scale_to_zero_inactivity_is_5_minutes_by_default"]),
    ("limit: shared buffers, pooled connections, temporary disk", &["limit_pooled_connections_shared_buffers_and_temporary_disk_are_shown_in_the_console"]),
    ("limit: local file cache", &["size_table_rows"]),
    ("limit: max_connections", &["limit_max_connections_follow_the_minimum_size"]),
    ("versioning", &["versioning_the_base_address_ends_with_v2"]),
];

#[test]
fn every_row_has_tests_that_exist() {
    for (row, tests) in ROWS {
        assert!(!tests.is_empty(), "{row}");
        for test in *tests {
            let declaration = format!("#[tokio::test]\nasync fn {test}()");
            assert!(SOURCES.iter().any(|source| source.contains(&declaration)), "{row}: there is no test {test}");
        }
    }
}
