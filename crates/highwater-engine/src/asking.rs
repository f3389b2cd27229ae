//! A question to the remote that is no work on keys: where its head is, what changed, what there is.

use highwater_core::{Event, Failure, FailureKind, Lane, Moment};
use highwater_sources::{Beat, Call};

use crate::{EngineError, context::Engine, dispatcher::DrainEnd, error::Result, refusal::RefusalWatch};

/// Asks as long as patience lasts; or why the work ends before there is an answer.
pub(crate) async fn ask<T>(
    engine: &Engine,
    question: impl AsyncFn(&Call) -> Result<T, Failure>,
) -> Result<Result<T, DrainEnd>> {
    let clock = &engine.world.clock;
    let call = Call::new(Lane::Live, Beat::new(clock.clone()));
    let began = clock.moment();
    let answer = async {
        let mut attempt = 0;
        loop {
            match question(&call).await {
                Ok(answer) => return Ok(Ok(answer)),
                Err(failure) if failure.kind == FailureKind::Spent => {
                    return Ok(Err(DrainEnd::spent(failure, engine.now())));
                }
                Err(failure) if !may_retry(engine, &failure, began) => return Err(EngineError::from(failure)),
                Err(failure) => {
                    attempt += 1;
                    let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                    engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                    clock.sleep(wait).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = engine.world.stop.asked() => Ok(Err(DrainEnd::Stopped)),
        answer = answer => answer,
        until = RefusalWatch::new(engine).until_shut_out(engine) => Ok(Err(DrainEnd::GateClosed { until })),
    }
}

fn may_retry(engine: &Engine, failure: &Failure, began: Moment) -> bool {
    let is_final = matches!(failure.kind, FailureKind::Redirect | FailureKind::Credentials);
    !is_final && engine.world.clock.moment().since(began) < engine.settings.patience.retry
}
