import { LIMIT_SECONDS, type LimitUnit, unitName } from '../keys/limit.ts';
import type { Standing } from '../limits/allowance.ts';
import type { Reply } from './replies.ts';

/** The fields that tell a client of its limits (draft-ietf-httpapi-ratelimit-headers-11). */
export type RateLimitFields = Readonly<Record<'RateLimit-Policy' | 'RateLimit', string>>;

/** Where a request stands to its limits: one policy for each unit, named after it, the one that leaves the fewest. */
export function rateLimitFields(standings: readonly Standing[]): RateLimitFields {
  const [first, ...others] = standings;
  // Most keys have one limit.
  if (first && others.length === 0) return { 'RateLimit-Policy': policyOf(first), RateLimit: serviceLimitOf(first) };
  const closest = new Map<LimitUnit, Standing>();
  for (const standing of standings) {
    const other = closest.get(standing.unit);
    if (!other || standing.remaining < other.remaining) closest.set(standing.unit, standing);
  }
  const shown = [...closest.values()];
  return { 'RateLimit-Policy': shown.map(policyOf).join(', '), RateLimit: shown.map(serviceLimitOf).join(', ') };
}

/** A reply that tells of limits, if there are any. */
export function withFields(reply: Reply, fields: RateLimitFields | undefined): Reply {
  return fields ? { ...reply, headers: { ...reply.headers, ...fields } } : reply;
}

/** In whole seconds, at least one: so long a client has to wait. */
export function secondsUntil(microseconds: number): number {
  return Math.max(Math.ceil(microseconds / 1_000_000), 1);
}

function policyOf({ count, unit }: Standing): string {
  return `"${unitName(unit)}";q=${count};w=${LIMIT_SECONDS[unit]}`;
}

/** `t` is when more becomes available; there is no more where nothing was used. */
function serviceLimitOf({ unit, remaining, moreIn }: Standing): string {
  return `"${unitName(unit)}";r=${remaining}${moreIn > 0 ? `;t=${secondsUntil(moreIn)}` : ''}`;
}
