use super::*;
use crate::decide::Reason;
use crate::domain::{ComputeUnits, PostgresSettings};

const MESSAGE: &str = "the platform's words (request req-7)";

fn not_found() -> Fault {
    Fault::NotFound {
        message: MESSAGE.to_owned(),
    }
}

fn forbidden() -> Fault {
    Fault::Forbidden {
        status: 403,
        message: MESSAGE.to_owned(),
    }
}

fn conflict() -> Fault {
    Fault::Conflict {
        message: MESSAGE.to_owned(),
    }
}

fn rejected() -> Fault {
    Fault::Rejected {
        status: 422,
        message: MESSAGE.to_owned(),
    }
}

/// The message, which has the platform's words and the request ID at its end.
fn message(call: Call, fault: &Fault) -> String {
    let (Health::Stalled(Reason::Refused, message) | Health::Stalled(Reason::Forbidden, message)) =
        health(&call, fault)
    else {
        panic!("{fault:?}")
    };
    assert!(message.ends_with(MESSAGE), "{message}");
    message
}

#[test]
fn a_refused_create_names_the_fields_and_their_values() {
    let settings = Settings {
        min: ComputeUnits::new(0.25),
        max: ComputeUnits::new(16.0),
        postgres: PostgresSettings([("work_mem".to_owned(), "confidential".to_owned())].into()),
        ..Settings::default()
    };
    let (project, branch) = ("p-1".into(), "br-nope".into());
    let none = Settings::default();
    for (role, settings, fault, words) in [
        (
            Role::Primary,
            &none,
            not_found(),
            "Branch br-nope is not in project p-1: correct spec.branchID.",
        ),
        (
            Role::Replica,
            &none,
            forbidden(),
            "branch br-nope of project p-1",
        ),
        (Role::Primary, &none, conflict(), "spec.existing to Adopt"),
        (
            Role::Replica,
            &none,
            conflict(),
            "If the answer names a limit",
        ),
        (Role::Primary, &settings, rejected(), "spec.size 0.25-16"),
        (
            Role::Primary,
            &settings,
            rejected(),
            "spec.postgresSettings.work_mem not shown",
        ),
    ] {
        let call = Call::CreateCompute {
            project: &project,
            branch: &branch,
            role,
            settings,
        };
        let message = message(call, &fault);
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("confidential"), "{message}");
    }
}

#[test]
fn a_refused_change_names_what_differs() {
    let moved = ComputeChange {
        branch_id: Some("br-nope".into()),
        ..ComputeChange::default()
    };
    let resized = ComputeChange::default();
    let id = "ep-1".into();
    let project = "p-1".into();
    for (change, fault, words) in [
        (&moved, not_found(), "Branch br-nope is not in project p-1"),
        (&resized, rejected(), "compute ep-1 (size 1, declared 2)"),
        (&resized, forbidden(), "may not change compute ep-1"),
    ] {
        let call = Call::ChangeCompute {
            id: &id,
            project: &project,
            change,
            because: "size 1, declared 2",
        };
        let message = message(call, &fault);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn the_words_of_the_platform_fit_behind_many_fields() {
    let settings = (0..200).map(|number| (format!("setting_number_{number}"), "1".to_owned()));
    let settings = Settings {
        postgres: PostgresSettings(settings.collect()),
        ..Settings::default()
    };
    let (project, branch, id) = ("p-1".into(), "br-1".into(), "ep-1".into());
    let create = Call::CreateCompute {
        project: &project,
        branch: &branch,
        role: Role::Replica,
        settings: &settings,
    };
    let change = Call::ChangeCompute {
        id: &id,
        project: &project,
        change: &ComputeChange::default(),
        because: &"size is 1, declared is 2; ".repeat(200),
    };
    for call in [create, change] {
        let message = message(call, &rejected());
        assert!(message.len() < 2000, "{message}");
    }
}

#[test]
fn a_refused_key_names_the_project_and_the_organization() {
    let (project, organization) = ("p-1".into(), "org-1".into());
    let create = Call::CreateKey {
        project: &project,
        organization: &organization,
    };
    let list = Call::ListKeys {
        organization: &organization,
    };
    for (call, fault, words) in [
        (
            create,
            not_found(),
            "Project p-1 is not in organization org-1",
        ),
        (create, forbidden(), "personal API key of an administrator"),
        (create, rejected(), "no key for project p-1"),
        (list, forbidden(), "correct spec.organizationID"),
        (
            Call::ListComputes { project: &project },
            not_found(),
            "Project p-1 cannot be read",
        ),
    ] {
        let message = message(call, &fault);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_fault_that_no_field_causes_has_no_advice() {
    let fault = Fault::Server {
        status: 502,
        message: MESSAGE.to_owned(),
    };
    let project = "p-1".into();
    assert_eq!(
        health(&Call::ListComputes { project: &project }, &fault),
        of_fault(&fault)
    );
}
