//! What a sync would take, found out by listing alone.

use highwater_core::{Failure, FailureKind};
use highwater_sources::{Following, Forecast};

use crate::{
    Engine,
    account::{self, AccountLink},
    asking::ask,
    dispatcher::DrainEnd,
    duties::Duties,
    error::Result,
};

/// What it would take to mirror a stream now; none where that is only known once others are mirrored.
#[derive(Clone, Debug)]
pub struct StreamForecast {
    pub stream: String,
    pub forecast: Option<Forecast>,
}

impl Engine {
    /// Lists every stream, fetches nothing, and says how many calls a sync would make.
    pub async fn forecast(&self) -> Result<Vec<StreamForecast>> {
        let owner = self.world.entropy.worker_id();
        let account = AccountLink::join(self, owner.clone()).await?;
        let duties = Duties::start(self, account);
        let forecasts = self.counted("plan", self.forecasts()).await;
        drop(duties);
        account::leave(self, &owner).await;
        self.source.sign_off().await;
        forecasts
    }

    async fn forecasts(&self) -> Result<Vec<StreamForecast>> {
        let mut forecasts = Vec::new();
        for spec in self.source.streams().iter().filter(|spec| spec.follows == Following::Sync) {
            let forecast = match ask(self, async |call| self.source.forecast(&spec.name, call).await).await? {
                Ok(forecast) => forecast,
                Err(DrainEnd::Spent { why, .. }) => return Err(Failure::new(FailureKind::Spent, why).into()),
                Err(_) => {
                    return Err(Failure::new(FailureKind::Throttled, "the calls for the lists cannot be made").into());
                }
            };
            forecasts.push(StreamForecast { stream: spec.name.to_string(), forecast });
        }
        Ok(forecasts)
    }
}
