import type { ApiKey } from '../../keys/key/api-key.ts';
import type { Status } from '../../keys/key/status.ts';
import { printable } from '../../keys/text.ts';
import type { Explanation } from '../../routes/explain.ts';
import { atRoute, routeJson } from './route-view.ts';

/** What an explanation is of. */
export interface Explained {
  /** The file that declares the routes. */
  file: string;
  /** The request as it was typed. */
  typed: string;
  explanation: Explanation;
  /** The key that the request has, if one is named. */
  key?: { key: ApiKey; status: Status } | undefined;
}

/** An explanation as JSON and as text. */
export async function explanationView(explained: Explained): Promise<{ json: object; text: string }> {
  return { json: jsonOf(explained), text: await textOf(explained) };
}

function jsonOf({ file, explanation, key }: Explained): object {
  const { decision, request, preflightFor, otherCaseOf, others, otherMethods } = explanation;
  return {
    outcome: decision.outcome,
    request: request ?? null,
    preflightFor: preflightFor ?? null,
    refusal: decision.match ? null : decision.refusal,
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

async function textOf({ file, typed, explanation, key }: Explained): Promise<string> {
  const { describeAllow, describeExplanation, describeMatch } = await import('../../routes/describe.ts');
  const { decision, request, otherCaseOf, others, otherMethods } = explanation;
  const subject = request ? `${request.method} ${request.host}${request.path}` : printable(typed, 200);
  const reason = describeExplanation(explanation, key && { name: key.key.name, status: key.status });
  const lines = [`${subject} is ${decision.outcome}: ${reason}`];
  const add = (match: Parameters<typeof describeMatch>[0], text: string) =>
    lines.push(atRoute(file, match, `${describeMatch(match)} ${text}`));
  if (decision.match) add(decision.match, `decides, and requires ${describeAllow(decision.match.route.allow)}`);
  if (otherCaseOf) add(otherCaseOf, 'differs from it only by case');
  for (const { match, because } of others) add(match, `comes after that: ${because}`);
  for (const match of otherMethods) add(match, 'is for other methods');
  return lines.join('\n');
}
