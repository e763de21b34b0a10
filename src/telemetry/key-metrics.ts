import { Counter, Gauge, type Registry } from 'prom-client';
import { noChecks } from '../keys/authentication/check-counts.ts';
import type { KeysService } from '../keys/service.ts';
import type { Limited } from '../limits/limiter.ts';
import { KeyCounter } from './key-counter.ts';

/** What is told of the keys of a process. */
export type MeasuredKeys = Pick<KeysService, 'authenticator' | 'countKeys' | 'unwrittenUses'> & Limited;

/** The keys that a process serves by now, and whether it is the one that counts those of the store. */
export interface KeysInUse {
  keys: MeasuredKeys | undefined;
  counts: boolean;
}

/** Tells a registry of checks of keys, limits and the store's keys. Everything is read when it is asked for. */
export function addKeyMetrics(registry: Registry, inUse: KeysInUse): void {
  addChecks(registry, inUse);
  addLimits(registry, inUse);
  addStoredKeys(registry, inUse);
}

function addChecks(registry: Registry, inUse: KeysInUse): void {
  const registers = [registry];
  new Counter({
    name: 'svc_api_key_checks_total',
    help: 'Checks of secrets: hit for one that was remembered, miss for one that the store was asked for, or refused.',
    labelNames: ['result', 'reason'],
    registers,
    collect() {
      this.reset();
      const { remembered, found, refused } = inUse.keys?.authenticator.counts ?? noChecks();
      this.inc({ result: 'hit', reason: '' }, remembered);
      this.inc({ result: 'miss', reason: '' }, found);
      for (const [reason, count] of Object.entries(refused)) this.inc({ result: 'refused', reason }, count);
    },
  });
  new Gauge({
    name: 'svc_api_verified_keys',
    help: 'Accepted secrets that are remembered.',
    registers,
    collect() {
      this.set(inUse.keys?.authenticator.remembered ?? 0);
    },
  });
  new Counter({
    name: 'svc_api_verified_keys_evicted_total',
    help: 'Accepted secrets that were forgotten to make room for others: see --max-verified-keys.',
    registers,
    collect() {
      this.reset();
      this.inc(inUse.keys?.authenticator.counts.evicted ?? 0);
    },
  });
}

function addLimits(registry: Registry, inUse: KeysInUse): void {
  const registers = [registry];
  new Counter({
    name: 'svc_api_limited_requests_total',
    help: 'Requests that were refused as a limit of their key was used up.',
    registers,
    collect() {
      this.reset();
      this.inc(inUse.keys?.limiter.counts.refused ?? 0);
    },
  });
  new Counter({
    name: 'svc_api_limit_leases_total',
    help: 'Leases of limits that the store was asked for, or told of.',
    registers,
    collect() {
      this.reset();
      this.inc(inUse.keys?.limiter.counts.leases ?? 0);
    },
  });
  new Gauge({
    name: 'svc_api_limited_keys',
    help: 'Keys with limits that were used lately.',
    registers,
    collect() {
      this.set(inUse.keys?.limiter.size ?? 0);
    },
  });
}

function addStoredKeys(registry: Registry, inUse: KeysInUse): void {
  const registers = [registry];
  const counter = new KeyCounter(async () => inUse.keys!.countKeys());
  const latest = async () => (inUse.counts && inUse.keys ? counter.latest() : undefined);
  new Gauge({
    name: 'svc_api_keys',
    help: 'Keys in the store by status, as they were counted, at most some minutes ago.',
    labelNames: ['status'],
    aggregator: 'max',
    registers,
    async collect() {
      const found = await latest();
      this.reset();
      for (const [status, count] of Object.entries(found?.counts ?? {}))
        this.set({ status: status.toLowerCase() }, count);
    },
  });
  new Gauge({
    name: 'svc_api_next_key_expiry_timestamp_seconds',
    help: 'When the next of the active keys expires, since 1970; absent where none does.',
    aggregator: 'max',
    registers,
    async collect() {
      const { nextExpiry = null } = (await latest()) ?? {};
      if (nextExpiry === null) this.remove();
      else this.set(nextExpiry / 1000);
    },
  });
  new Gauge({
    name: 'svc_api_unwritten_uses',
    help: 'Uses of keys that are not written to the store yet.',
    registers,
    collect() {
      this.set(inUse.keys?.unwrittenUses ?? 0);
    },
  });
}
