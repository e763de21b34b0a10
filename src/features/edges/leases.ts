import {
  checkOptions,
  count,
  KeysError,
  type Limit,
  list,
  options,
  parseLimits,
  required,
  type Rule,
  splitLimit,
  text,
  uuid,
} from '../../keys/basics/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import type { LeasedLimit, LeaseGrant, LeaseRequest, Limited } from '../../limits/index.ts';
import { Origin } from './origin.ts';

/** The most lease requests of an edge at a time. */
const MAX_LEASES = 100;
/** The longest name of a holder or a route, since both are stored with the limit. */
const MAX_NAME = 100;
const UNUSED: LeaseGrant['limits'][number] = { unusedAt: 0, leased: 0 };

const isLimit: Rule<Limit> = (value, name) => text(value, name) ?? parseLimits([value as string]).issues[0]?.message;
const isName: Rule<string> = (value, name) =>
  text(value, name) ?? ((value as string).length > MAX_NAME ? `has more than ${MAX_NAME} characters.` : undefined);
const isNumber: Rule<number> = (value, name) =>
  count(value, name) ?? (Number.isSafeInteger(value) ? undefined : 'is too large.');

const REQUESTS = list(
  options<LeaseRequest>({
    holder: required(isName),
    turn: required(isNumber),
    used: required(isNumber),
    limits: required(
      list(
        options<LeasedLimit>({
          keyId: required(uuid),
          limit: required(isLimit),
          route: isName,
          weight: isNumber,
          unusedAt: required(isNumber),
        }),
        1,
      ),
    ),
    waiting: required(isNumber),
    ahead: required(isNumber),
    lifeUs: required(isNumber),
  }),
);

/**
 * Grants an edge's lease requests. Limits of keys are those stored here, whatever it sends; it states the limits of
 * routes itself. Its holders are kept apart from others.
 * @param given the requests as received
 * @param by the id of the edge's key
 * @returns the grants in the order of the requests; null for a request whose key was deleted
 * @throws KeysError OPTION_INVALID, STORE_…
 */
export async function leaseToEdge(
  keys: Pick<KeysService, 'feature'> & Limited,
  given: unknown,
  by: string,
): Promise<(LeaseGrant | null)[]> {
  checkOptions('The leases', { requests: given }, { requests: required(REQUESTS) });
  const requests = given as readonly LeaseRequest[];
  if (requests.length > MAX_LEASES) throw new KeysError('OPTION_INVALID', `There are more than ${MAX_LEASES} leases.`);
  const ids = new Set(requests.flatMap(({ limits }) => limits.map(({ keyId }) => keyId)));
  const known = await keys.feature(Origin).limitsOf([...ids]);
  const held = requests.map(({ limits }) =>
    limits.every(({ keyId }) => known.has(keyId)) ? limits.map((limit) => limitHeld(limit, known)) : undefined,
  );
  const leased = requests.flatMap((request, index) => {
    const limits = (held[index] ?? []).filter((limit) => limit !== undefined);
    return limits.length > 0 ? { ...request, holder: `${by} ${request.holder}`, limits } : [];
  });
  const grants = (leased.length > 0 ? await keys.limiter.store.lease(leased) : []).values();
  return requests.map(({ waiting }, index) => {
    const limits = held[index];
    if (!limits) return null;
    // The edge does not know yet that its limits were removed.
    if (!limits.some(Boolean))
      return { now: Date.now() * 1000, granted: waiting, ahead: 0, limits: limits.map(() => UNUSED) };
    const grant = grants.next().value;
    if (!grant) return null;
    const states = grant.limits.values();
    return { ...grant, limits: limits.map((limit) => (limit ? states.next().value! : UNUSED)) };
  });
}

/** The limit that a request is held to; undefined if its key has no such limit. */
function limitHeld(asked: LeasedLimit, known: ReadonlyMap<string, readonly Limit[]>): LeasedLimit | undefined {
  if (asked.route !== undefined) return asked;
  const { unit } = splitLimit(asked.limit);
  const limit = known.get(asked.keyId)?.find((each) => splitLimit(each).unit === unit);
  return limit && { ...asked, limit };
}
