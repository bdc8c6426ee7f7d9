//! Accounts and ClusterAccounts.

use std::collections::BTreeMap;

use dbplane::api::{AccountCapabilities, AccountStatus, SeenProjects};
use dbplane::decide::account::{
    AccountCheck, AccountFacts, AccountObserved, AccountSubject, Answers, Credential,
    ProjectsObserved, SecretProtection, Verdict, decide, status,
};
use dbplane::decide::{AccountView, Limits, Memory, Meta};
use dbplane::domain::Unreadable;

use super::worst::{Place, account, cluster_account};
use super::{NOW, excess, is_worst};

/// Number of resources that refer to the account, and of their projects.
const USERS: usize = 10_000;

fn observed(users: usize, deleting: bool) -> AccountObserved {
    let names: Vec<String> = (0..users)
        .map(|number| format!("Compute evil/{number:0>253}"))
        .collect();
    let projects = (0..users).map(|number| format!("{number:0>60}").into());
    let named = projects.clone().collect();
    let check = AccountCheck {
        began: NOW,
        at: NOW,
        verdict: Verdict::Projects(projects.collect()),
        capabilities: AccountCapabilities::default(),
        keys: Some(users),
        unreadable: Unreadable::default(),
        answers: Answers::default(),
        absent: BTreeMap::new(),
    };
    AccountObserved {
        meta: Meta {
            generation: 1,
            has_finalizer: true,
            deleting,
            ..Meta::default()
        },
        uid: "uid-1".into(),
        account: AccountView::NotNeeded,
        memory: Memory::default(),
        limits: Limits::default(),
        cluster: "c1u57e".parse().unwrap(),
        random: 7,
        facts: AccountFacts {
            subject: AccountSubject {
                address: "platform.example:443".to_owned(),
                organization: Some("org-1".into()),
                entry: "entry api-key of Secret shop/platform-key".to_owned(),
                key_mistake: None,
            },
            credential: Credential::Usable,
            check: Some(check),
            suspended: None,
            users: names.clone(),
            blocking: names,
            in_use: true,
            blocking_deleted: false,
            shared: false,
            projects: ProjectsObserved {
                named,
                seen: Some(SeenProjects::default()),
                ..ProjectsObserved::default()
            },
            keys: None,
            too_large: None,
            unreadable: Vec::new(),
            reported: None,
            secret: Some(SecretProtection {
                protected: true,
                ..SecretProtection::default()
            }),
        },
    }
}

fn pass(observed: &AccountObserved) {
    let decision = decide(observed, NOW);
    assert_eq!(decision.step, None);
    status(
        &decision.report.unwrap(),
        observed,
        &AccountStatus::default(),
        NOW,
    );
}

pub fn rows() -> Vec<Option<String>> {
    let (place, base_url) = (
        Place::default(),
        format!("https://{}.example/{}/v2", "h".repeat(60), "p".repeat(400)),
    );
    is_worst(
        &account(&place, &base_url),
        &account(&place, &"p".repeat(513)),
        "spec.baseURL",
    );
    let admitting = |namespaces| cluster_account(&place, &base_url, namespaces);
    is_worst(&admitting(256), &admitting(257), "spec.namespaces.names");
    vec![
        excess(
            "an account with many resources and projects",
            USERS,
            |users| observed(users, false),
            pass,
        ),
        excess(
            "one that is deleted and waits for them",
            USERS,
            |users| observed(users, true),
            pass,
        ),
    ]
}
