import type { Permission } from '../keys/permissions/catalog.ts';
import type { Status } from '../keys/key/status.ts';
import { listOf, printable } from '../keys/text.ts';
import type { Decision } from './decide.ts';
import type { Explanation } from './explain.ts';
import type { Allow, Match, Route } from './route-tree.ts';

/** `GET, HEAD example.org/api/**`; without methods if it is for all of them. */
function describePattern({ methods, host, path }: Pick<Route, 'methods' | 'host' | 'path'>): string {
  return `${methods ? `${methods.join(', ')} ` : ''}${host}${path}`;
}

/** `route 3 (GET example.org/api/**)`, counted from 1. */
export function describeMatch({ route, index }: Match): string {
  return `route ${index + 1} (${describePattern(route)})`;
}

/** What a request needs, to go after "requires": `a valid key`, `A:READ_ANY and B:READ_ANY`. */
export function describeAllow(allow: Allow): string {
  if (!('permissions' in allow)) return allow.kind === 'open' ? 'no key' : 'a valid key';
  return permissionsText(allow.kind, allow.permissions);
}

/** Why a decision is as it is: `the key lacks A:READ_ANY`. */
function describeReason(decision: Decision): string {
  if (!decision.match) return decision.refusal;
  const { allow } = decision.match.route;
  if (decision.outcome === 'forbidden') return `the key lacks ${permissionsText(allow.kind, decision.missing)}`;
  if (decision.outcome === 'refused') return 'it has no valid key';
  return decision.used.length > 0 ? `the key has ${listOf(decision.used)}` : `it requires ${describeAllow(allow)}`;
}

/** Why a request is decided as explained. @param key the one that was named, whose status may be the reason */
export function describeExplanation(
  { decision, preflightFor }: Explanation,
  key: { readonly name: string; readonly status: Status } | undefined,
): string {
  if (key && key.status !== 'ACTIVE' && decision.outcome === 'refused')
    return `API key "${printable(key.name, 100)}" is ${key.status}`;
  return preflightFor === undefined ? describeReason(decision) : `a preflight for ${preflightFor} needs no key here`;
}

/** A decision and its reason: `forbidden by route 3 (…), as the key lacks A:READ_ANY`. */
export function describeDecision(decision: Decision): string {
  if (!decision.match) return `forbidden, as ${decision.refusal}`;
  const { match, outcome } = decision;
  const by = `${outcome} by ${describeMatch(match)}`;
  if (outcome === 'refused') return `${by}, which requires ${describeAllow(match.route.allow)}`;
  return outcome === 'allowed' ? by : `${by}, as ${describeReason(decision)}`;
}

function permissionsText(kind: Allow['kind'], permissions: readonly Permission[]): string {
  return listOf(permissions, kind === 'any' ? 'or' : 'and');
}
