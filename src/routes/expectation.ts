import type { OrRefusal } from '../keys/errors.ts';
import type { Catalog } from '../keys/permissions/catalog.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';
import { PermissionSet } from '../keys/permissions/permission-set.ts';
import { printable } from '../keys/text.ts';
import { decide, type Decision } from './decide.ts';
import { describeDecision } from './describe.ts';
import type { RequestParts } from './request.ts';
import { parseRequest } from './pattern.ts';
import type { Router } from './router.ts';

/** What a file of routes says that should come of them. */
export interface Expectation {
  /** As it was written. */
  readonly text: string;
  readonly request: RequestParts;
  /** What the key may do; undefined without a key. */
  readonly permissions: PermissionSet | undefined;
  readonly outcome: Decision['outcome'];
}

const FORM =
  'Write it as "GET https://example.org/path with DOCKER:READ_ANY is allowed". For the key there may also be ' +
  '"with any key" and "without a key", and for the answer "is refused" and "is forbidden".';
const OUTCOMES: readonly string[] = ['allowed', 'refused', 'forbidden'] satisfies Decision['outcome'][];

/** Parses `GET https://example.org/path with R:A, R:A is allowed`. Faults are sentences. */
export function parseExpectation(text: string, catalog: Catalog): OrRefusal<{ value: Expectation }, string[]> {
  const [method = '', url = '', ...words] = text.trim().split(/\s+/);
  const outcome = words.pop() ?? '';
  const is = words.pop();
  const caller = words.join(' ');
  if (is !== 'is' || !OUTCOMES.includes(outcome) || !/^with(?:out a key$| )/.test(caller)) {
    return { refusal: [`"${printable(text, 200)}" is not an expectation. ${FORM}`] };
  }
  const request = parseRequest(method, url);
  const permissions = parseCaller(caller, catalog);
  const faults = [...('refusal' in request ? [request.refusal] : []), ...permissions.faults];
  if ('refusal' in request || faults.length > 0) return { refusal: faults };
  return {
    value: {
      text: text.trim(),
      request: request.value,
      permissions: permissions.value,
      outcome: outcome as Decision['outcome'],
    },
  };
}

function parseCaller(text: string, catalog: Catalog): { value: PermissionSet | undefined; faults: string[] } {
  if (text === 'without a key') return { value: undefined, faults: [] };
  if (text === 'with any key') return { value: new PermissionSet(), faults: [] };
  const { values, issues } = parsePermissions(text.slice('with '.length).split(','), catalog);
  return { value: new PermissionSet(values), faults: issues.map(({ message }) => message) };
}

/** Why an expectation does not hold, in a sentence that says what decides instead; undefined if it holds. */
export function failureOf({ text, request, permissions, outcome }: Expectation, router: Router): string | undefined {
  const decision = decide(router, request, permissions);
  if (decision.outcome === outcome) return undefined;
  return `"${printable(text, 200)}" is not so: it is ${describeDecision(decision)}.`;
}
