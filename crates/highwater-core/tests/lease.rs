//! Leases against a naive model: whoever claimed last may write, and nobody else.

use std::time::Duration;

use highwater_core::{Epoch, Lease, LeaseState, SegmentId, SegmentStatus, Timestamp, WorkerId};
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A worker looks for work; it takes the segment if nobody holds it, or the holder was not heard of for long.
    Claim {
        worker: usize,
    },
    Beat {
        worker: usize,
    },
    Pass {
        seconds: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0usize..3).prop_map(|worker| Step::Claim { worker }),
        (0usize..3).prop_map(|worker| Step::Beat { worker }),
        (0u64..40).prop_map(|seconds| Step::Pass { seconds }),
    ];
    prop::collection::vec(step, 1..80)
}

struct Model {
    state: LeaseState,
    now: Timestamp,
    leases: [Option<Lease>; 3],
    /// Who claimed last, in the naive book.
    holder: Option<usize>,
}

impl Model {
    fn new() -> Self {
        let state =
            LeaseState { status: SegmentStatus::Pending, owner: None, epoch: Epoch::default(), heartbeat_at: None };
        Model { state, now: Timestamp::from_millis(1_000_000), leases: [None, None, None], holder: None }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Pass { seconds } => self.now = self.now + Duration::from_secs(seconds),
            Step::Beat { worker } => {
                let lease = self.leases[worker].clone();
                if lease.is_some_and(|lease| self.state.admits(&lease).is_ok()) {
                    self.state.heartbeat_at = Some(self.now);
                }
            }
            Step::Claim { worker } => {
                if self.state.status == SegmentStatus::Pending || self.state.is_expired(self.now, TTL) {
                    let name = WorkerId::new(&format!("worker {worker}"));
                    let (state, lease) = self.state.claimed(SegmentId(1), &name, self.now);
                    self.state = state;
                    self.leases[worker] = Some(lease);
                    self.holder = Some(worker);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn only_the_last_claim_may_write(steps in steps()) {
        let mut model = Model::new();
        let mut old = Vec::new();
        for step in steps {
            let before = model.leases.clone();
            model.play(step);
            for (worker, lease) in before.into_iter().enumerate() {
                if lease != model.leases[worker] {
                    old.extend(lease);
                }
            }
            for (worker, lease) in model.leases.iter().enumerate() {
                let admitted = lease.as_ref().is_some_and(|lease| model.state.admits(lease).is_ok());
                prop_assert_eq!(admitted, model.holder == Some(worker));
            }
            for lease in &old {
                prop_assert!(model.state.admits(lease).is_err(), "a lease of the past still writes: {:?}", lease);
            }
        }
    }

    #[test]
    fn a_holder_that_beats_in_time_is_never_replaced(pauses in prop::collection::vec(0u64..30, 1..40)) {
        let mut model = Model::new();
        model.play(Step::Claim { worker: 0 });
        for seconds in pauses {
            model.play(Step::Pass { seconds });
            model.play(Step::Claim { worker: 1 });
            model.play(Step::Beat { worker: 0 });
        }
        prop_assert_eq!(model.holder, Some(0));
    }
}
