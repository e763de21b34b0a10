import type { Visit } from '../../visit.tsx';
import { ROUTE_FIELDS, RouteText, type ShownRoute } from './route-table.tsx';

const ROUTE = `{ ${ROUTE_FIELDS} }`;
const QUERY = `query Explain($method: String, $url: String!, $keyName: String) {
  explainRequest(method: $method, url: $url, keyName: $keyName) {
    outcome reason missing apiKey { id name }
    route ${ROUTE} otherCaseOf ${ROUTE} after { because route ${ROUTE} } otherMethods ${ROUTE}
  }
}`;

/** A request that somebody asks about. */
export interface AskedRequest {
  readonly method: string;
  readonly url: string;
  /** The name of a key; empty for none. */
  readonly key: string;
}

/** See `RequestExplanation` of the schema. */
export interface Explanation {
  readonly outcome: 'ALLOWED' | 'REFUSED' | 'FORBIDDEN';
  readonly reason: string;
  readonly missing: readonly string[];
  readonly apiKey: { readonly id: string; readonly name: string } | null;
  readonly route: ShownRoute | null;
  readonly otherCaseOf: ShownRoute | null;
  readonly after: readonly { readonly because: string; readonly route: ShownRoute }[];
  readonly otherMethods: readonly ShownRoute[];
}

/** Asks which route decides about a request. @throws OperationFailed */
export async function explain(visit: Visit, { method, url, key }: AskedRequest): Promise<Explanation> {
  const variables = { method, url, ...(key !== '' && { keyName: key }) };
  const { explainRequest } = await visit.ask<{ explainRequest: Explanation }>(QUERY, variables);
  return explainRequest;
}

const OUTCOMES = {
  ALLOWED: ['It may pass.', 'done'],
  REFUSED: ['It needs a key that is accepted: 401.', 'problem'],
  FORBIDDEN: ['It may not pass: 403.', 'problem'],
} as const;

/** What becomes of a request, and why. */
export function ExplanationView({ explained, asked }: { explained: Explanation; asked: AskedRequest }) {
  const { outcome, reason, route, missing, otherCaseOf, after, otherMethods, apiKey } = explained;
  const [says, kind] = OUTCOMES[outcome];
  return (
    <section class={`notice ${kind}`} role="status" aria-label="Explanation">
      <p>
        <strong>{says}</strong> <code>{`${asked.method} ${asked.url}`}</code>
        {apiKey ? ` with the key ${apiKey.name}` : ' without a key'}
      </p>
      <p>{sentence(reason)}</p>
      {missing.length > 0 && (
        <p>
          The key lacks{' '}
          {missing.map((permission) => (
            <code>{permission} </code>
          ))}
        </p>
      )}
      {route && (
        <p>
          <RouteText route={route} />, and decides.
        </p>
      )}
      {otherCaseOf && (
        <p>
          But for upper and lower case: <RouteText route={otherCaseOf} />
        </p>
      )}
      <Others title="These match, too, and come after it" routes={after} />
      <Others title="These are for other methods" routes={otherMethods.map((other) => ({ route: other }))} />
    </section>
  );
}

function Others({
  title,
  routes,
}: {
  title: string;
  routes: readonly { readonly route: ShownRoute; readonly because?: string }[];
}) {
  if (routes.length === 0) return null;
  return (
    <>
      <p>{title}:</p>
      <ul>
        {routes.map(({ route, because }) => (
          <li>
            <RouteText route={route} />
            {because !== undefined && <span class="faint">{` (${because})`}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

/** A reason in words, as a sentence. */
function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
