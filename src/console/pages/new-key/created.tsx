import { Done } from '../../parts/notice.tsx';
import { Secret } from '../../parts/secret.tsx';
import { Time } from '../../parts/time.tsx';

/** What `createApiKey` is asked for. */
export const CREATE = `mutation Create($input: CreateApiKeyInput!) {
  createApiKey(input: $input) {
    key
    apiKey { id name expiresAt effectivePermissions { resource actions } }
    replaced { id }
  }
}`;

/** A key that was just created. */
export interface Created {
  /** The secret, which is shown once. */
  readonly key: string;
  readonly apiKey: {
    readonly id: string;
    readonly name: string;
    readonly expiresAt: string | null;
    readonly effectivePermissions: { resource: string; actions: string[] }[];
  };
  readonly replaced: readonly object[];
}

/** Shows the secret, once, and how to use it. @param origin under which clients reach the service */
export function CreatedPage({
  root,
  now,
  origin,
  created: { key, apiKey, replaced },
}: {
  root: string;
  now: number;
  origin: string;
  created: Created;
}) {
  return (
    <>
      <div class="head">
        <h1>{apiKey.name} is created</h1>
      </div>
      <Done>
        <p>
          This is its secret. It is shown here and never again: put it now where it is to be kept.
          {replaced.length > 0 &&
            ` ${replaced.length === 1 ? 'One key was' : `${replaced.length} keys were`} deleted for it.`}
        </p>
      </Done>
      <Secret of={apiKey.name} secret={key} />
      <h2>How it is used</h2>
      <p>
        In a shell, this reads the secret without showing it, and sends it so that it stands in no list of processes and
        in no history:
      </p>
      <pre tabindex={0}>
        <code>{exampleFor(apiKey, origin)}</code>
      </pre>
      <p>
        It ends <Time at={apiKey.expiresAt} now={now} />. <a href={`${root}keys/${apiKey.id}`}>Look at the key</a>
        {' · '}
        <a href={`${root}keys`}>All keys</a>
      </p>
    </>
  );
}

function exampleFor({ effectivePermissions }: Created['apiKey'], origin: string): string {
  const mayRead = effectivePermissions.some(
    ({ resource, actions }) => resource === 'ME' && actions.includes('READ_OWN'),
  );
  const query = JSON.stringify({ query: mayRead ? '{ me { name } }' : '{ __typename }' });
  return [
    'read -rs SVC_API_KEY',
    `printf 'Authorization: Bearer %s' "$SVC_API_KEY" | curl --silent -H @- \\`,
    `  -H 'Content-Type: application/json' -d '${query}' ${origin}/graphql`,
  ].join('\n');
}
