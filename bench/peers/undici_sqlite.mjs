// Hacker News into SQLite with undici and better-sqlite3: keep-alive connections, one prepared upsert, batched
// transactions.

import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import Database from "better-sqlite3";
import { Pool } from "undici";

const COLUMNS = [
  "id", "type", "by", "time", "title", "url", "text", "score", "descendants",
  "parent", "poll", "kids", "parts", "dead", "deleted",
];
const IN_FLIGHT = 64;
const BATCH = 1_000;

function openStore(path) {
  const store = new Database(path);
  store.pragma("journal_mode = WAL");
  store.pragma("synchronous = FULL");
  store.exec(readFileSync(new URL("schema.sql", import.meta.url), "utf8"));
  return store;
}

function batchWriter(store) {
  const marks = COLUMNS.map(() => "?").join(", ");
  const updates = COLUMNS.slice(1).map((name) => `${name} = excluded.${name}`).join(", ");
  const upsert = store.prepare(
    `INSERT INTO items (${COLUMNS.join(", ")}) VALUES (${marks}) ON CONFLICT (id) DO UPDATE SET ${updates}`,
  );
  return store.transaction((rows) => {
    for (const row of rows) upsert.run(row);
  });
}

function row(item) {
  return COLUMNS.map((name) => {
    const value = item[name];
    if (value === undefined) return null;
    if (typeof value === "boolean") return value ? 1 : 0;
    return typeof value === "object" ? JSON.stringify(value) : value;
  });
}

async function fetchItem(pool, id) {
  const { statusCode, body } = await pool.request({ path: `/v0/item/${id}.json`, method: "GET" });
  if (statusCode !== 200) throw new Error(`item ${id}: status ${statusCode}`);
  return body.json();
}

async function mirror(pool, items, writeBatch) {
  let next = 1;
  let batch = [];
  async function worker() {
    while (next <= items) {
      const item = await fetchItem(pool, next++);
      if (item === null) continue;
      batch.push(row(item));
      if (batch.length === BATCH) {
        writeBatch(batch);
        batch = [];
      }
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  writeBatch(batch);
}

function peakRssMb() {
  const status = readFileSync("/proc/self/status", "utf8");
  return Number(/^VmHWM:\s+(\d+)/m.exec(status)[1]) / 1024;
}

async function main([baseUrl, itemsText, path]) {
  const items = Number(itemsText);
  const started = performance.now();
  const store = openStore(path);
  const pool = new Pool(baseUrl, { connections: IN_FLIGHT });
  await mirror(pool, items, batchWriter(store));
  const stored = store.prepare("SELECT count(*) FROM items").pluck().get();
  await pool.close();
  store.close();
  const seconds = (performance.now() - started) / 1_000;
  if (stored !== items) throw new Error(`${stored} items stored, ${items} wanted`);
  const line = { items: stored, seconds, items_per_second: stored / seconds, peak_rss_mb: peakRssMb() };
  console.log(JSON.stringify(line));
}

if (process.argv.length !== 5) {
  console.error("usage: undici_sqlite.mjs BASE_URL ITEMS DB");
  process.exit(2);
}
await main(process.argv.slice(2));
