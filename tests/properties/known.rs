//! Histories that once broke a promise, shrunk. A seed would stand for another history as soon as the strategies change.

use dbplane_simulator::world::Profile;

use super::faults::{Carried, Fault, Hit};
use super::history::{Access, Chapter, Declared, Event, History};

/// What went wrong, and the history.
pub fn histories() -> Vec<(&'static str, History)> {
    [of_computes(), of_keys()].concat()
}

fn of_computes() -> Vec<(&'static str, History)> {
    let replica = Declared { branch: 0, primary: false, size: 0 };
    let primary = Declared { primary: true, ..replica.clone() };
    let elsewhere = Declared { branch: 1, ..primary.clone() };
    let computes = |computes: &[&Declared], chapters: &[(Event, u16)], faults: &[(u16, Fault)]| {
        history(Profile::Public, computes, chapters, faults)
    };
    let dies = |carried| Fault::Dies(carried);
    let silence = Fault::Silence(Carried::Never);
    vec![
        (
            "a connection Secret that a backup restored without its owner",
            computes(&[&replica], &[(Event::Nothing, 2), (Event::Rebuild, 0)], &[]),
        ),
        (
            "one that the backup has from between the two writes of it",
            computes(&[&replica], &[(Event::Nothing, 2), (Event::Rebuild, 0)], &[(7, dies(Carried::Now))]),
        ),
        (
            "a create that arrives after its successor has given up waiting",
            computes(
                &[&replica],
                &[(Event::Nothing, 72)],
                &[(3, dies(Carried::Now)), (1, silence.clone()), (3, silence.clone()), (4, dies(Carried::Late(66)))],
            ),
        ),
        (
            "a primary that somebody else creates while the process dies",
            computes(&[&elsewhere, &replica], &[(Event::ForeignCompute(1, true), 0)], &[(5, dies(Carried::Now))]),
        ),
        (
            "a create that arrives after its resource was deleted",
            computes(
                &[&replica],
                &[(Event::Nothing, 1), (Event::Delete(0), 0)],
                &[(2, silence), (3, dies(Carried::Late(66)))],
            ),
        ),
        (
            "an account whose next check shows that names are kept, beside a Compute that waits for a person",
            History {
                profile: Profile::Default,
                ..computes(
                    &[&replica, &Declared { branch: 1, ..replica.clone() }],
                    &[(Event::ForeignCompute(1, false), 18), (Event::Nothing, 118)],
                    &[(21, Fault::Silence(Carried::Never)), (1, Fault::Silence(Carried::Now))],
                )
            },
        ),
        (
            "a copy of a resource that is then deleted and applied again",
            computes(
                &[&replica, &primary],
                &[(Event::Copied(1), 0), (Event::Delete(1), 7), (Event::Reapply(1, false), 0)],
                &[(19, dies(Carried::Now))],
            ),
        ),
    ]
}

fn of_keys() -> Vec<(&'static str, History)> {
    let dies = || Fault::Dies(Carried::Never);
    vec![(
        "a platform that once did not offer its list of keys",
        History {
            key: true,
            ..history(
                Profile::Default,
                &[],
                &[
                    (Event::KeyDeleted, 1),
                    (Event::KeyRevoked, 9),
                    (Event::KeyReapplied(true), 2),
                    (Event::KeyDeleted, 1),
                ],
                &[(30, dies()), (0, dies()), (14, Fault::Cut), (27, Fault::Refused(404))],
            )
        },
    )]
}

fn history(profile: Profile, computes: &[&Declared], chapters: &[(Event, u16)], faults: &[(u16, Fault)]) -> History {
    History {
        profile,
        computes: computes.iter().map(|declared| (*declared).clone()).collect(),
        key: false,
        chapters: chapters.iter().map(|(event, seconds)| Chapter { event: event.clone(), seconds: *seconds }).collect(),
        faults: faults.iter().map(|(after, fault)| Hit { after: *after, fault: fault.clone() }).collect(),
        account: Access::Account,
        deletes_per_minute: 30,
    }
}
