use super::*;

const NOW: Duration = Duration::from_secs(1000);

fn after(seconds: u64) -> Duration {
    NOW + Duration::from_secs(seconds)
}

fn unavailable(seconds: u64) -> Circuit {
    Circuit::Unavailable {
        next_probe: after(seconds),
    }
}

#[test]
fn one_request_at_a_time_asks_and_the_others_wait() {
    for (circuit, admitted, left) in [
        (Circuit::Available, Admission::Pass, Circuit::Available),
        (unavailable(1), Admission::Wait(after(1)), unavailable(1)),
        (unavailable(0), Admission::Probe, unavailable(2)),
    ] {
        let mut now = circuit;
        assert_eq!((now.admit(NOW), now), (admitted, left), "{circuit:?}");
    }
    let mut circuit = unavailable(0);
    let asked = [
        circuit.admit(NOW),
        circuit.admit(NOW),
        circuit.admit(after(1)),
        circuit.admit(after(2)),
    ];
    let wait = Admission::Wait(after(2));
    assert_eq!(
        asked,
        [Admission::Probe, wait, wait, Admission::Probe],
        "no answer holds up the next for 2 s"
    );
}

#[test]
fn what_an_answer_shows() {
    let retry_after = |seconds| Answer::Unavailable(Some(Duration::from_secs(seconds)));
    let silent = Answer::Unavailable(None);
    for (what, before, asked, answer, left) in [
        (
            "served",
            Circuit::Available,
            false,
            Answer::Served,
            Circuit::Available,
        ),
        (
            "the first: the next asks at once",
            Circuit::Available,
            false,
            silent,
            unavailable(0),
        ),
        (
            "the first names a pause",
            Circuit::Available,
            false,
            retry_after(4),
            unavailable(4),
        ),
        (
            "still unavailable",
            unavailable(2),
            true,
            silent,
            unavailable(1),
        ),
        (
            "a pause of 0 s is none",
            unavailable(2),
            true,
            retry_after(0),
            unavailable(1),
        ),
        (
            "a pause is obeyed",
            unavailable(2),
            true,
            retry_after(4),
            unavailable(4),
        ),
        (
            "a pause is bounded",
            unavailable(2),
            true,
            retry_after(86_400),
            unavailable(60),
        ),
        (
            "it is back",
            unavailable(2),
            true,
            Answer::Served,
            Circuit::Available,
        ),
        (
            "sent before, and served",
            unavailable(2),
            false,
            Answer::Served,
            unavailable(2),
        ),
        (
            "sent before, and not served",
            unavailable(2),
            false,
            silent,
            unavailable(2),
        ),
        (
            "sent before, with a pause",
            unavailable(2),
            false,
            retry_after(4),
            unavailable(4),
        ),
    ] {
        let mut circuit = before;
        circuit.answered(asked, answer, NOW);
        assert_eq!(circuit, left, "{what}");
    }
}

#[test]
fn which_statuses_say_nothing_of_what_was_asked_for() {
    let unavailable: Vec<u16> = (100..600)
        .filter(|status| is_unavailable(*status))
        .collect();
    assert_eq!(unavailable, [429, 502, 503, 504]);
}
