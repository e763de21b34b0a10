import { isIP } from 'node:net';
import type { ActivityEvents } from '../../keys/authentication/index.ts';
import type { AuditDraft, Refusal } from '../../keys/audit/index.ts';
import {
  anyText,
  anything,
  checkOptions,
  count,
  list,
  oneOf,
  options,
  orNull,
  required,
  type Rule,
  type Rules,
  text,
  UNIT_MS,
  uuid,
} from '../../keys/basics/index.ts';
import {
  type ApiKey,
  type HourUse,
  type KeyUse,
  OUTCOMES,
  ROUTE,
  startOf,
  sumOf,
  NO_REQUESTS,
  TOOL,
} from '../../keys/key/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import type { SharedParts } from '../../keys/service/index.ts';

/** An edge's report about the keys that it accepted and refused. */
export interface EdgeReport extends ActivityEvents {
  /** A random id. A repeated report has no effect. */
  readonly id: string;
  readonly usage: readonly KeyUse[];
}

/** The edge's key. */
type Reporter = Pick<ApiKey, 'id' | 'name'>;

type EdgeReportsOptions = Pick<SharedParts, 'activity' | 'activityWriters' | 'clock'>;

/**
 * The average rate of requests that the edges of one key can report, and the period it is averaged over. More are not
 * counted.
 */
const [REQUESTS_PER_S, SAVED_S] = [100_000, 600];
/** The number of keys whose reported counts are remembered, for the edges of one key. */
const MAX_REMEMBERED = 10_000;
/** The most hours of a key in a report. */
const MAX_HOURS = 25;
/** How far before the present day a report reaches. */
const OLDEST_MS = 90 * UNIT_MS.d;
/** The longest name that a report can have for a tool, a route or a refused caller. */
const MAX_NAME = 300;
/** The most permissions that a refusal names. */
const MAX_MISSING = 5;

/** The counts that the edges of one key have reported. */
interface Reported {
  /** How many more requests they can report, and when that was computed, in milliseconds since 1970. */
  left: number;
  at: number;
  /** How many uses of each key they have reported, by its id. No more than these can be taken back. */
  readonly uses: Map<string, number>;
}

/**
 * Accepts the reports of edges within plausible bounds: an edge is trusted to check keys, but its own key may have
 * leaked. Refusals are sampled like those of this process, and name the edge.
 */
export class EdgeReports {
  readonly #options: EdgeReportsOptions;
  readonly #reported = new Map<string, Reported>();

  constructor(options: EdgeReportsOptions) {
    this.#options = options;
  }

  /**
   * Writes the report of an edge, once, whichever process of the store receives it.
   * @param catalog names the grants whose use is recorded
   * @throws KeysError STORE_…
   */
  async take(report: EdgeReport, edge: Reporter, catalog: Pick<Catalog, 'knows'>): Promise<void> {
    const { activity, activityWriters, clock } = this.#options;
    const { writeUse, writeEvents } = activityWriters;
    const { id, activated, refusals } = report;
    const now = clock();
    const reported = this.#reportedBy(edge, now);
    const before = reported.left;
    const once = new Map(report.usage.map((each) => [each.id, each]));
    const usage = Array.from(once.values(), (each) => bounded(each, reported, catalog, now));
    const spent = before - reported.left;
    if (usage.length > 0) {
      const isNew = await writeUse(usage, `${id} usage`).catch((error: unknown) => {
        reported.left += spent;
        throw error;
      });
      if (isNew === false) reported.left += spent;
      else for (const { id: key, uses } of usage) remember(reported.uses, key, uses);
    }
    if (activated.length + refusals.length === 0) return;
    const isNew = await writeEvents({ activated, refusals: [] }, `${id} events`);
    if (isNew !== false) for (const draft of refusals) activity.refused(...refusalIn(draft, edge));
  }

  #reportedBy({ id }: Reporter, now: number): Reported {
    const most = REQUESTS_PER_S * SAVED_S;
    const known = this.#reported.get(id) ?? { left: most, at: now, uses: new Map<string, number>() };
    this.#reported.set(id, known);
    known.left = Math.min(known.left + (Math.max(now - known.at, 0) / 1000) * REQUESTS_PER_S, most);
    known.at = now;
    return known;
  }
}

/** The usage of a key, within plausible bounds. */
function bounded(usage: KeyUse, reported: Reported, { knows }: Pick<Catalog, 'knows'>, now: number): KeyUse {
  const isKnown = (grant: string) =>
    grant.startsWith(TOOL) || grant.startsWith(ROUTE)
      ? grant.length <= MAX_NAME
      : knows(grant.startsWith('role:') ? grant.slice('role:'.length) : grant);
  // An accepted request can later turn out to be refused, after it was reported as a use.
  const least = -(reported.uses.get(usage.id) ?? 0);
  const byStart = new Map<number, HourUse>();
  for (const hour of usage.hours.slice(0, MAX_HOURS)) {
    const start = startOf('HOUR', Math.min(Math.max(hour.start, startOf('DAY', now) - OLDEST_MS), now));
    const counts = {
      accepted: Math.max(hour.accepted, least),
      forbidden: Math.max(hour.forbidden, 0),
      limited: Math.max(hour.limited, 0),
      refused: Math.max(hour.refused, 0),
    };
    byStart.set(start, { start, ...sumOf(byStart.get(start) ?? NO_REQUESTS, counts) });
  }
  const hours = [...byStart.values()];
  const uses = Math.max(usage.uses, least);
  const sum = hours.reduce(sumOf, NO_REQUESTS);
  const requests = Math.max(
    Math.abs(uses),
    OUTCOMES.reduce((all, outcome) => all + Math.abs(sum[outcome]), 0),
  );
  const fits = requests <= reported.left;
  if (fits) reported.left -= requests;
  const earliest = (time: number | null) => (time === null ? time : Math.min(time, now));
  return {
    id: usage.id,
    uses: fits ? uses : 0,
    lastUsedAt: earliest(usage.lastUsedAt),
    previousLastUsedAt: earliest(usage.previousLastUsedAt),
    permissions: [...new Set(usage.permissions)].filter(isKnown),
    hours: fits ? hours : [],
  };
}

/** Records reported uses of a key; the most recently reported keys are remembered. */
function remember(known: Map<string, number>, id: string, uses: number): void {
  const sum = (known.get(id) ?? 0) + uses;
  known.delete(id);
  if (sum > 0) known.set(id, sum);
  const [oldest] = known.keys();
  if (known.size > MAX_REMEMBERED) known.delete(oldest!);
}

/** The refusal in an edge's audit entry, and the number of requests. */
function refusalIn({ actor, action, apiKey, after, address }: AuditDraft, edge: Reporter): [Refusal, number] {
  const { reason, missing, tool, route, count: times } = after ?? {};
  const name = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_NAME) : undefined);
  const refusal: Refusal = {
    reason: name(reason) ?? 'various',
    actor: { ...actor, name: name(actor.name) ?? null },
    apiKey: apiKey && { ...apiKey, name: apiKey.name.slice(0, MAX_NAME) },
    missing: Array.isArray(missing) ? missing.slice(0, MAX_MISSING).flatMap((each) => name(each) ?? []) : undefined,
    tool: name(tool),
    address: address !== undefined && isIP(address) > 0 ? address : undefined,
    route: action === 'OBSERVE' ? (name(route) ?? '') : undefined,
    elsewhere: { reporter: edge.id, details: { edge: { id: edge.id, name: edge.name } } },
  };
  return [refusal, wholeNumber(times) === undefined ? Math.max(times as number, 1) : 1];
}

/** The most requests of a key in a report, so that their sums fit the database. */
const MAX_COUNTED = 1e9;

const HOUR: Rules<HourUse> = {
  start: required(count),
  // An accepted request can turn out to be refused.
  accepted: required(wholeNumber),
  forbidden: required(wholeNumber),
  limited: required(wholeNumber),
  refused: required(wholeNumber),
};
const REPORT: Rules<EdgeReport> = {
  // Bounded, since it is remembered.
  id: required(uuid),
  usage: required(
    list(
      options<KeyUse>({
        id: required(uuid),
        uses: required(wholeNumber),
        lastUsedAt: required(orNull(count)),
        previousLastUsedAt: required(orNull(count)),
        permissions: required(list(text) as Rule<KeyUse['permissions']>),
        hours: required(list(options(HOUR))),
      }),
    ),
  ),
  activated: required(list(options({ id: required(uuid), publicId: required(text) })) as Rule<EdgeReport['activated']>),
  refusals: required(
    list(
      options<AuditDraft>({
        at: required(count),
        actor: required(
          options({
            kind: required(oneOf('KEY', 'REQUEST')),
            id: required(orNull(uuid)),
            name: required(orNull(anyText)),
          }),
        ),
        action: required(oneOf('REFUSE', 'OBSERVE')),
        apiKey: required(orNull(options({ id: required(uuid), name: required(text) }))),
        before: required(orNull(anything)),
        after: required(anything),
        address: text,
      }),
    ) as Rule<EdgeReport['refusals']>,
  ),
};

function wholeNumber(value: unknown): string | undefined {
  const isOne = Number.isSafeInteger(value) && Math.abs(value as number) <= MAX_COUNTED;
  return isOne ? undefined : `must be a whole number of at most ${MAX_COUNTED}.`;
}

/** Reads the report of an edge. @throws KeysError OPTION_INVALID */
export function readEdgeReport(given: unknown): EdgeReport {
  checkOptions<EdgeReport>('The report', given, REPORT);
  return given as EdgeReport;
}
