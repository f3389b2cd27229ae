//! Fetching mail as the product does, with its transport and gateway, up to the body and no further.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use highwater_core::Lane;
use highwater_sources::{Beat, Call, Clock, Gateway, Request};
use http::{HeaderValue, header};
use serde::Deserialize;

use crate::{product, work::Work};

/// As the simulator knows it.
const GRANT: &str =
    "grant_type=refresh_token&refresh_token=sim-refresh-token&client_id=sim-client&client_secret=sim-secret";
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const MESSAGES: &str = "/gmail/v1/users/me/messages";

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    messages: Vec<Listed>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

/// A mailbox whose messages are known by id.
struct Mailbox {
    gateway: Arc<Gateway>,
    token: HeaderValue,
}

/// How many messages there are, and how long it took to fetch them. Finding out which there are is not counted.
pub(crate) async fn fetch(base_url: &str, in_flight: u32, clock: &Clock) -> anyhow::Result<(u64, Duration)> {
    let gateway = Arc::new(product::gateway(base_url, in_flight, clock)?);
    product::driven(&gateway, async {
        let token = HeaderValue::from_str(&format!("Bearer {}", token(&gateway).await?.access_token))?;
        let mailbox = Arc::new(Mailbox { gateway: gateway.clone(), token });
        let ids: Arc<[String]> = mailbox.list().await?.into();
        let started = clock.moment();
        let work = Work::new(ids.len() as u64, in_flight.try_into()?);
        work.share(|work| fetch_all(mailbox.clone(), ids.clone(), work)).await?;
        Ok((ids.len() as u64, clock.moment().since(started)))
    })
    .await
}

async fn token(gateway: &Gateway) -> anyhow::Result<Token> {
    let response = gateway.get(&Request::post("/token", FORM, GRANT), &call(gateway), 1.0).await?;
    serde_json::from_slice(&response.body).context("no token")
}

fn call(gateway: &Gateway) -> Call {
    Call::new(Lane::Backfill, Beat::new(gateway.clock().clone()))
}

impl Mailbox {
    async fn get(&self, path: String) -> anyhow::Result<bytes::Bytes> {
        let mut request = Request::get(path);
        request.headers.insert(header::AUTHORIZATION, self.token.clone());
        let response = self.gateway.get(&request, &call(&self.gateway), 1.0).await?;
        ensure!(response.status.is_success(), "answered {}", response.status);
        Ok(response.body)
    }

    async fn list(&self) -> anyhow::Result<Vec<String>> {
        let mut ids = Vec::new();
        let mut next = String::new();
        loop {
            let page = self.get(format!("{MESSAGES}?maxResults=500{next}")).await?;
            let page: Page = serde_json::from_slice(&page).context("no list of messages")?;
            ids.extend(page.messages.into_iter().map(|listed| listed.id));
            match page.next_page_token {
                Some(token) => next = format!("&pageToken={token}"),
                None => return Ok(ids),
            }
        }
    }
}

async fn fetch_all(mailbox: Arc<Mailbox>, ids: Arc<[String]>, work: Work) -> anyhow::Result<()> {
    while let Some(number) = work.next_id() {
        mailbox.get(format!("{MESSAGES}/{}?format=raw", ids[number as usize - 1])).await?;
    }
    Ok(())
}
