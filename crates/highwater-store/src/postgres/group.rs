//! A group of jobs in one transaction. One that is fenced off is left out; one whose data the server refuses is found
//! by writing each alone; nobody is answered before what concerns them is durable.

use tokio::sync::oneshot;

use super::{
    commit::{self, Answers},
    error::{Fault, Sql},
    job::Job,
    pool::{Access, Pool, unreachable},
    rows::{self, Expected},
};
use crate::{ErrorKind, LiveCommitted, Result};

/// A job, and whoever waits for it.
pub(super) struct Waiting {
    pub(super) job: Job,
    pub(super) reply: oneshot::Sender<Result<LiveCommitted>>,
}

const DOING: &str = "committing a job";
/// Two groups may hit upon the same rows now and then, not over and over.
pub(super) const COLLISIONS_MAX: u32 = 5;

/// Writes the jobs and answers all of them. Broken off in the middle, it leaves them unanswered: they are brought again.
pub(super) async fn write(pool: &Pool, mut group: Vec<Waiting>) {
    group.retain(|waiting| !waiting.reply.is_closed());
    let (sound, refused): (Vec<_>, Vec<_>) =
        group.into_iter().map(|waiting| (rows::check(&waiting.job), waiting)).partition(|(check, _)| check.is_ok());
    for (check, waiting) in refused {
        answer(waiting, check.map(|()| LiveCommitted::default()).map_err(|fault| fault.while_doing(DOING)));
    }
    let sound: Vec<_> = sound.into_iter().map(|(_, waiting)| waiting).collect();
    match attempt(pool, &sound).await {
        Ok(answers) => sound.into_iter().zip(answers).for_each(|(waiting, outcome)| answer(waiting, outcome)),
        Err(fault) if fault.kind() == ErrorKind::Refused && sound.len() > 1 => {
            for waiting in sound {
                let alone = attempt(pool, std::slice::from_ref(&waiting)).await;
                let outcome = alone.map(|mut answers| answers.remove(0)).map_err(|fault| fault.while_doing(DOING));
                answer(waiting, outcome.and_then(|outcome| outcome));
            }
        }
        Err(fault) => sound.into_iter().for_each(|waiting| answer(waiting, Err(fault.shared(DOING)))),
    }
}

fn answer(waiting: Waiting, outcome: Result<LiveCommitted>) {
    // The one who asked may have left: what was written stays written.
    drop(waiting.reply.send(outcome));
}

async fn attempt(pool: &Pool, group: &[Waiting]) -> Sql<Answers> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: Vec<_> = group.iter().map(|waiting| &waiting.job).collect();
    let mut collisions = 0;
    loop {
        let (seat, db) = pool.seat(Access::Write).await.map_err(|fault| Fault::Decided(unreachable(fault, DOING)))?;
        let expected = if collisions == 0 { Expected::Nothing } else { Expected::Edges };
        match seat.carry(commit::commit(&db, &jobs, expected)).await {
            Err(fault) if fault.is_collision() && collisions < COLLISIONS_MAX => collisions += 1,
            outcome => return outcome,
        }
    }
}
