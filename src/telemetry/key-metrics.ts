import type { Registry } from 'prom-client';
import { noChecks } from '../keys/authentication/authenticator.ts';
import type { KeysService } from '../keys/service.ts';
import type { Limited } from '../limits/limiter.ts';
import { addCounter, addGauge, type Value } from './collected.ts';
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
  addCounter(
    registry,
    {
      name: 'svc_api_key_checks_total',
      help: 'Checks of secrets: hit for one that was remembered, miss where the store was asked, or refused.',
      labelNames: ['result', 'reason'],
    },
    () => {
      const { remembered, found, refused } = inUse.keys?.authenticator.counts ?? noChecks();
      const refusals = Object.entries(refused);
      return [
        [remembered, { result: 'hit', reason: '' }],
        [found, { result: 'miss', reason: '' }],
        ...refusals.map(([reason, count]): Value => [count, { result: 'refused', reason }]),
      ];
    },
  );
  addGauge(registry, { name: 'svc_api_verified_keys', help: 'Accepted secrets that are remembered.' }, () => [
    [inUse.keys?.authenticator.remembered ?? 0],
  ]);
  addCounter(
    registry,
    {
      name: 'svc_api_verified_keys_evicted_total',
      help: 'Accepted secrets that were forgotten to make room for others: see server.maxVerifiedKeys.',
    },
    () => [[inUse.keys?.authenticator.counts.evicted ?? 0]],
  );
}

function addLimits(registry: Registry, inUse: KeysInUse): void {
  addCounter(
    registry,
    { name: 'svc_api_limited_requests_total', help: 'Requests that were refused as a limit of their key was used up.' },
    () => [[inUse.keys?.limiter.counts.refused ?? 0]],
  );
  addCounter(
    registry,
    { name: 'svc_api_limit_leases_total', help: 'Leases of limits that the store was asked for, or notified of.' },
    () => [[inUse.keys?.limiter.counts.leases ?? 0]],
  );
  addGauge(registry, { name: 'svc_api_limited_keys', help: 'Keys with limits that were used lately.' }, () => [
    [inUse.keys?.limiter.size ?? 0],
  ]);
}

function addStoredKeys(registry: Registry, inUse: KeysInUse): void {
  const counter = new KeyCounter(async () => inUse.keys!.countKeys());
  const latest = async () => (inUse.counts && inUse.keys ? counter.latest() : undefined);
  addGauge(
    registry,
    {
      name: 'svc_api_keys',
      help: 'Keys in the store by status, as they were counted, at most some minutes ago.',
      labelNames: ['status'],
      aggregator: 'max',
    },
    async () => {
      const found = await latest();
      return Object.entries(found?.counts ?? {}).map(([status, count]): Value => [
        count,
        { status: status.toLowerCase() },
      ]);
    },
  );
  addGauge(
    registry,
    {
      name: 'svc_api_next_key_expiry_timestamp_seconds',
      help: 'When the next of the active keys expires, since 1970; absent where none does.',
      aggregator: 'max',
    },
    async () => {
      const { nextExpiry = null } = (await latest()) ?? {};
      return nextExpiry === null ? [] : [[nextExpiry / 1000]];
    },
  );
  addGauge(
    registry,
    { name: 'svc_api_unwritten_uses', help: 'Uses of keys that are not written to the store yet.' },
    () => [[inUse.keys?.unwrittenUses ?? 0]],
  );
}
