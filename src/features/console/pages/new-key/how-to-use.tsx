import type { ResourceActions } from '../../../../keys/permissions/index.ts';
import { Fact } from '../../parts/notice.tsx';
import type { Visit } from '../../visit.tsx';

const REACH = `query Reach($id: ID!) {
  routes(first: 100, keyId: $id) { edges { passes passesAll node { host path methods allow } } }
}`;

/** Requests to a guarded service that a key is allowed to make. */
interface ReachedRoute {
  /** Such as `https://grafana.example.org/api/**`; only the path if the host is not known. */
  readonly address: string;
  readonly methods: readonly string[];
}

/** Maximum number of routes to list. */
const MAX_ROUTES = 3;

/** Loads the guarded services that a new key can reach, if the person is allowed to know. @throws OperationFailed */
export async function askReach(visit: Visit, id: string): Promise<readonly ReachedRoute[]> {
  if (!visit.may('CONFIG:READ_ANY') || !visit.may('API_KEY:READ_OWN')) return [];
  const { edges } = await visit.ask<{
    edges: {
      passes: string[];
      passesAll: boolean;
      node: { host: string; path: string; methods: string[] | null; allow: string };
    }[];
  }>(REACH, { id });
  return edges
    .filter(({ passes, node }) => passes.length > 0 && node.allow !== 'OPEN')
    .map(({ passes, passesAll, node: { host, path, methods } }) => ({
      address: host.includes('*') ? path : `https://${host}${path}`,
      methods: passesAll && methods === null ? ['all methods'] : passes,
    }))
    .slice(0, MAX_ROUTES);
}

/** Explains where and how to use a new secret without leaving it in process lists or shell history. */
export function HowToUse({
  visit: { origin, parts },
  permissions,
  reach,
}: {
  visit: Visit;
  permissions: readonly ResourceActions[];
  reach: readonly ReachedRoute[];
}) {
  const { credentials } = parts;
  const [place = 'bearer'] = credentials;
  const header = typeof place === 'object' ? `${headerName(place.header)}: ` : 'Authorization: Bearer ';
  const guarded = reach.find(({ address, methods }) => address.startsWith('https:') && /GET|all/.test(methods.join()));
  const request = guarded ? ` '${concrete(guarded.address)}'` : graphqlRequest(permissions, origin);
  return (
    <section aria-labelledby="use">
      <h2 id="use">How to use it</h2>
      <dl class="facts">
        <Fact name="URL">
          <code>{`${origin}/graphql`}</code>
        </Fact>
        {reach.length > 0 && (
          <Fact name="Guarded services">
            {reach.map(({ address, methods }) => (
              <div>
                <code>{address}</code> <span class="faint">{methods.join(', ')}</span>
              </div>
            ))}
          </Fact>
        )}
        <Fact name="Header">
          {credentials.map((one) => (
            <div>
              <code>
                {one === 'basic'
                  ? 'Authorization: Basic, any user name, the secret as the password'
                  : `${typeof one === 'object' ? `${headerName(one.header)}:` : 'Authorization: Bearer'} <secret>`}
              </code>
            </div>
          ))}
        </Fact>
      </dl>
      <Example
        id="by-stdin"
        title="With curl, from standard input"
        lines={[
          'read -rs SVC_API_KEY',
          `printf '${header}%s' "$SVC_API_KEY" | curl --silent -H @- \\`,
          `  ${request.trim()}`,
        ]}
      />
      <Example
        id="by-file"
        title="With curl, from a file that only you can read"
        lines={[
          'read -rs SVC_API_KEY',
          `(umask 077 && printf '${header}%s' "$SVC_API_KEY" > svc-api.header)`,
          `curl --silent -H @svc-api.header${guarded ? request : ` \\\n  ${request.trim()}`}`,
        ]}
      />
      <p class="help">
        Paste the secret when <code>read</code> waits for it. It won't appear in your shell history or in process lists.
      </p>
    </section>
  );
}

function Example({ id, title, lines }: { id: string; title: string; lines: readonly string[] }) {
  return (
    <figure class="example">
      <figcaption>
        {title}
        <span>
          <span role="status"></span>{' '}
          <button type="button" class="quiet" data-copy={id} aria-label={`Copy: ${title}`} hidden>
            Copy
          </button>
        </span>
      </figcaption>
      <pre tabindex={0}>
        <code id={id}>{lines.join('\n')}</code>
      </pre>
    </figure>
  );
}

function graphqlRequest(permissions: readonly ResourceActions[], origin: string): string {
  const mayRead = permissions.some(({ resource, actions }) => resource === 'ME' && actions.includes('READ_OWN'));
  const query = JSON.stringify({ query: mayRead ? '{ me { name } }' : '{ __typename }' });
  return ` -H 'Content-Type: application/json' -d '${query}' ${origin}/graphql`;
}

/** An example address that matches the pattern of a route. */
function concrete(pattern: string): string {
  return pattern.replace(/\*\*$/, '').replaceAll('*', 'x').replaceAll("'", '%27');
}

/** `x-api-key` is `X-Api-Key`. */
function headerName(header: string): string {
  return header.replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}
