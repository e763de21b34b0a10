import { firstOf, formatCount } from '../../../cli/output.ts';
import type { Config } from '../../../config/config.ts';
import type { CommandConfig } from '../../../feature.ts';
import type { AuditEntry, AuditRequest } from '../../../keys/audit/index.ts';
import {
  formatList,
  formatTime,
  KeysError,
  printable,
  relativeTime,
  timeAndDistance,
} from '../../../keys/basics/index.ts';
import type { ApiKey, Status } from '../../../keys/key/index.ts';
import { type CatalogAdditions, vocabularyOf } from '../../../keys/permissions/index.ts';
import type { Allow, Explanation, Match, WideRoute } from '../index.ts';

export interface DeclaredRoutes extends Pick<Config, 'routes' | 'expect' | 'upstreams'> {
  /** An absolute path. */
  file: string;
  /** Resources and roles added by the file and the host. */
  additions: CatalogAdditions;
}

/**
 * The routes of the configuration.
 * @throws KeysError CONFIG_UNAVAILABLE if no file is named and none exists
 */
export function declaredRoutes({ config, ofHost }: CommandConfig): DeclaredRoutes {
  const { file, routes, expect, upstreams, builtinResources, roles } = config;
  if (file === undefined) {
    const remedy = 'Pass --config <path>, or set SVC_API_CONFIG.';
    throw new KeysError('CONFIG_UNAVAILABLE', `There is no configuration. ${remedy}`);
  }
  return {
    file,
    routes,
    expect,
    upstreams,
    additions: { ...vocabularyOf(ofHost, config), builtinResources, roles },
  };
}

const MAX_NAMED = 3;

/** Reports on routes whose expectations hold, as JSON and as text. */
export async function checkRoutes({
  file,
  routes,
  expect,
  upstreams,
}: DeclaredRoutes): Promise<{ json: object; text: string }> {
  const { createRouter, describeMatch, findUnreachable, findWideRoutes } = await import('../index.ts');
  const matchAt = (index: number) => ({ route: routes[index]!, index });
  const unreachable = findUnreachable(routes).map(({ index, behind }) => ({
    match: matchAt(index),
    behind: behind.map(matchAt),
  }));
  const verb = expect.length === 1 ? 'holds' : 'hold';
  const summary = `${formatCount(routes.length, 'route', 'routes')}; ${formatCount(expect.length, 'expectation', 'expectations')} ${verb}`;
  const lines = unreachable.map(({ match, behind }) => {
    const verb = behind.length === 1 ? 'decides' : 'decide';
    const others = formatList(behind.map(describeMatch));
    return atRoute(file, match, `${describeMatch(match)} can never match: ${others} ${verb} in its place`);
  });
  const wide = [...Map.groupBy(findWideRoutes(createRouter(routes)), ({ match }) => match.index).values()];
  const warnings = wide.map((found) => {
    const [{ match, path }] = found as [WideRoute];
    const narrower = found.map(({ narrower: other }) => describeMatch(other));
    const verb = found.length === 1 ? 'needs' : 'need';
    return atRoute(
      file,
      match,
      `${describeMatch(match)} decides about ${path}, too: to a service with a front controller, that is the path of ` +
        `${formatList(firstOf(narrower, MAX_NAMED))}, which ${verb} more`,
    );
  });
  const unused = upstreams.flatMap(({ name }) => (routes.some(({ to }) => to === name) ? [] : name!));
  for (const name of unused) lines.push(`${printable(file, 200)}: no route names the upstream "${name}"`);
  return {
    json: {
      file,
      routes: routes.length,
      expectations: expect.length,
      unreachable: unreachable.map(({ match, behind }) => ({ ...routeJson(match), behind: behind.map(routeJson) })),
      unusedUpstreams: unused,
      wide: wide.map((found) => ({
        ...routeJson(found[0]!.match),
        reached: found[0]!.path,
        narrower: found.map(({ narrower }) => routeJson(narrower)),
      })),
    },
    text: [`${printable(file, 200)}: ${summary}`, ...lines, ...warnings].join('\n'),
  };
}

/** A route as JSON: a closed list of fields. */
function routeJson({ route, index }: Match): object {
  const { line, methods, host, path, allow, to, mcp, limit, cost, crossSiteAllowed, preflightOpen, observe } = route;
  return {
    /** From 1. */
    number: index + 1,
    line: line ?? null,
    methods: methods ?? null,
    host,
    path,
    /** As the file has it; null where it names a resource. */
    allow: allowJson(allow),
    resource: allow.kind === 'resource' ? allow.resource : null,
    /** The name of the upstream. */
    to: to ?? null,
    /** Allowed parts of an MCP server. */
    mcp: mcp ?? null,
    limit: limit ?? null,
    cost: cost ?? null,
    crossSite: crossSiteAllowed ? 'allowed' : null,
    preflight: preflightOpen ? 'open' : null,
    observe: observe ?? false,
  };
}

function allowJson(allow: Allow) {
  if (allow.kind === 'resource') return null;
  if (!('permissions' in allow)) return allow.kind;
  return allow.kind === 'any' ? { any: allow.permissions } : allow.permissions;
}

/** Prefixes a text about a route with its place: `/etc/svc-api.yaml:12: …`. */
function atRoute(file: string, { route }: Match, text: string): string {
  return `${printable(file, 200)}:${route.line ?? 1}: ${text}`;
}

/** Requests that an observing route let pass. */
interface Observed {
  /** The name of the key; null without a valid one. */
  name: string | null;
  /** Permissions that the key lacks. */
  missing: readonly string[];
  requests: number;
  /** Milliseconds since 1970. */
  lastAt: number;
}

interface ObservingRoute {
  match: Match;
  /** Since when that is known, in milliseconds since 1970; null if no request has come. */
  since: number | null;
  observed: Observed[];
}

const PAGE_ENTRIES = 500;
const MAX_PAGES = 20;

/** Finds requests that observing routes let pass, in the newest 10,000 audit entries about that. */
export async function findObserved(
  { routes }: DeclaredRoutes,
  read: (request: AuditRequest, place: { before?: number }) => Promise<AuditEntry[]>,
): Promise<ObservingRoute[]> {
  const { describePattern } = await import('../index.ts');
  const found = new Map<string, ObservingRoute>();
  for (const [index, route] of routes.entries())
    if (route.observe) found.set(describePattern(route), { match: { route, index }, since: null, observed: [] });
  let place = {};
  for (let page = 0; page < MAX_PAGES && found.size > 0; page += 1) {
    const entries = await read({ action: 'OBSERVE', first: PAGE_ENTRIES }, place);
    for (const entry of entries) addObserved(entry, found);
    if (entries.length < PAGE_ENTRIES) break;
    place = { before: entries.at(-1)!.number };
  }
  return [...found.values()];
}

function addObserved({ at, actor, after }: AuditEntry, found: ReadonlyMap<string, ObservingRoute>): void {
  const {
    route,
    reason,
    count = 1,
    missing = [],
  } = after as { route?: string; reason?: string; count?: number; missing?: string[] };
  const observing = found.get(route ?? '');
  if (!observing) return;
  observing.since = Math.min(at, observing.since ?? at);
  if (reason === 'observing') return;
  const name = actor.kind === 'KEY' ? actor.name : null;
  const same = observing.observed.find((each) => each.name === name && each.missing.join() === missing.join());
  if (!same) observing.observed.push({ name, missing, requests: count, lastAt: at });
  else {
    same.requests += count;
    same.lastAt = Math.max(same.lastAt, at);
  }
}

/** Shows the requests that would be refused if routes stopped observing, as JSON and as text. */
export async function observedView(
  file: string,
  observing: readonly ObservingRoute[],
): Promise<{ json: object; text: string }> {
  const { describeMatch } = await import('../index.ts');
  const json = observing.map(({ match, since, observed }) => ({
    route: routeJson(match),
    since: formatTime(since),
    observed: observed.map(({ lastAt, ...each }) => ({ ...each, lastAt: formatTime(lastAt) })),
  }));
  const lines = observing.flatMap(({ match, since, observed }) => {
    const what = observed.length > 0 ? 'would refuse:' : 'would have refused no request so far';
    const started = since === null ? 'and no request has come' : `since ${timeAndDistance(since)}, and ${what}`;
    return [
      atRoute(file, match, `${describeMatch(match)} observes${since === null ? ', ' : ' '}${started}`),
      ...observed.map(({ name, missing, requests, lastAt }) => {
        const lacks = missing.length > 0 ? `, which lacks ${formatList(missing)}` : '';
        const who = name === null ? 'without a valid key, or otherwise not allowed' : `of "${printable(name)}"${lacks}`;
        return `  ${formatCount(requests, 'request', 'requests')} ${who}, the last ${relativeTime(lastAt)}`;
      }),
    ];
  });
  return { json: { file, observing: json }, text: lines.length > 0 ? lines.join('\n') : 'No route observes.' };
}

export interface ExplainedRequest {
  /** The file that declares the routes. */
  file: string;
  typed: string;
  explanation: Explanation;
  key?: { key: ApiKey; status: Status } | undefined;
}

export async function explanationView(explained: ExplainedRequest): Promise<{ json: object; text: string }> {
  return { json: jsonOf(explained), text: await textOf(explained) };
}

function jsonOf({ file, explanation, key }: ExplainedRequest): object {
  const { decision, request, preflightFor, otherCaseOf, others, otherMethods } = explanation;
  return {
    outcome: decision.outcome,
    request: request ?? null,
    preflightFor: preflightFor ?? null,
    refusal: 'refusal' in decision ? decision.refusal : null,
    route: decision.match ? routeJson(decision.match) : null,
    used: 'used' in decision ? decision.used : [],
    missing: 'missing' in decision ? decision.missing : [],
    otherCaseOf: otherCaseOf ? routeJson(otherCaseOf) : null,
    after: others.map(({ match, because }) => ({ ...routeJson(match), because })),
    otherMethods: otherMethods.map(routeJson),
    apiKey: key ? { id: key.key.id, name: key.key.name, status: key.status } : null,
    file,
  };
}

async function textOf({ file, typed, explanation, key }: ExplainedRequest): Promise<string> {
  const { allowOf, describeAllow, describeExplanation, describeMatch } = await import('../index.ts');
  const { decision, request, otherCaseOf, others, otherMethods } = explanation;
  const subject = request ? `${request.method} ${request.host}${request.path}` : printable(typed, 200);
  const reason = describeExplanation(explanation, key && { name: key.key.name, status: key.status });
  const lines = [`${subject} is ${decision.outcome}: ${reason}`];
  const add = (match: Parameters<typeof describeMatch>[0], text: string) =>
    lines.push(atRoute(file, match, `${describeMatch(match)} ${text}`));
  if (decision.match) {
    const { to } = decision.match.route;
    const goesTo = to === undefined ? '' : `, and its requests go to the upstream "${to}"`;
    add(decision.match, `decides, and requires ${describeAllow(allowOf(decision.match))}${goesTo}`);
  }
  if (otherCaseOf) add(otherCaseOf, 'differs from it only by case, or by how Unicode writes a character');
  for (const { match, because } of others) add(match, `comes after that: ${because}`);
  for (const match of otherMethods) add(match, 'is for other methods');
  return lines.join('\n');
}
