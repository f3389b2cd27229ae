//! Fetching as the product does, with its transport, gateway and settings, up to the body and no further.

use std::sync::Arc;

use anyhow::{Context, ensure};
use highwater_core::{
    Lane,
    throttle::{InFlight, Rate, Settings},
};
use highwater_sources::{Beat, Call, Clock, Gateway, HttpTransport, Request, TransportSettings};

use crate::work::Work;

pub(crate) async fn fetch(base_url: &str, work: &Work, clock: &Clock) -> anyhow::Result<()> {
    let gateway = Arc::new(gateway(base_url, work.in_flight(), clock)?);
    driven(&gateway, work.share(|work| fetch_items(gateway.clone(), work))).await
}

/// Does what needs the gateway while that is driven.
pub(crate) async fn driven<T>(
    gateway: &Arc<Gateway>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let driver = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.drive().await }
    });
    let done = work.await;
    gateway.stop();
    driver.await?;
    done
}

pub(crate) fn gateway(base_url: &str, in_flight: u32, clock: &Clock) -> anyhow::Result<Gateway> {
    let transport = HttpTransport::new(base_url, TransportSettings::default()).context("base URL")?;
    let in_flight = InFlight { start: in_flight, max: in_flight };
    let settings = Settings::new(Rate::Unlimited, in_flight);
    Ok(Gateway::new(Arc::new(transport), settings, clock.clone(), Box::new(|| 0.5)))
}

async fn fetch_items(gateway: Arc<Gateway>, work: Work) -> anyhow::Result<()> {
    let call = Call::new(Lane::Backfill, Beat::new(gateway.clock().clone()));
    while let Some(id) = work.next_id() {
        let response = gateway.get(&Request::get(format!("/v0/item/{id}.json")), &call, 1.0).await?;
        ensure!(response.status.is_success(), "item {id}: {}", response.status);
    }
    Ok(())
}
