import type { Pages } from '../page-routes.ts';
import { Done } from '../parts/notice.tsx';
import { type KeyStatus, Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import type { Visit } from '../visit.tsx';

const QUERY = `query Key($id: ID!) {
  apiKey(id: $id) {
    id name prefix description grants status expiresAt lastUsedAt uses createdAt createdBy disabledAt managed
  }
}`;

interface ShownKey {
  id: string;
  name: string;
  prefix: string;
  description: string | null;
  grants: string[];
  status: KeyStatus;
  expiresAt: string | null;
  lastUsedAt: string | null;
  uses: number;
  createdAt: string;
  createdBy: string | null;
  disabledAt: string | null;
  managed: boolean;
}

/** What a page says after a form was sent from it, by the field `done` of its address. */
const DONE: Readonly<Record<string, string>> = {
  disabled: 'The key is disabled: it is refused from now on.',
  enabled: 'The key is enabled.',
};

/** Adds the page of one key. */
export function addKeyPage(pages: Pages): void {
  pages.get('keys/:id', async (visit) => {
    const { apiKey } = await visit.ask<{ apiKey: ShownKey | null }>(QUERY, { id: visit.param('id') });
    if (!apiKey) return visit.page('Not found', <NoSuchKey />, 404);
    return visit.page(apiKey.name, <KeyPage visit={visit} apiKey={apiKey} />);
  });
  for (const [path, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    pages.post(`keys/:id/${path}`, async (visit) => {
      const id = visit.param('id');
      await visit.ask(
        `mutation($id: ID!, $enabled: Boolean!) { setApiKeyEnabled(id: $id, enabled: $enabled) { id } }`,
        {
          id,
          enabled,
        },
      );
      return visit.seeOther(`keys/${id}?done=${path}d`);
    });
}

function NoSuchKey() {
  return (
    <div class="narrow">
      <h1>Not found</h1>
      <p>There is no key with this id that you may see. It may have been deleted.</p>
    </div>
  );
}

function KeyPage({ visit, apiKey }: { visit: Visit; apiKey: ShownKey }) {
  const { root, now } = visit;
  const done = DONE[visit.query('done') ?? ''];
  const base = `${root}keys/${apiKey.id}`;
  return (
    <>
      {done !== undefined && <Done>{done}</Done>}
      <div class="head">
        <h1>
          {apiKey.name} <Status is={apiKey.status} />
        </h1>
        <form method="post" action={`${base}/${apiKey.disabledAt === null ? 'disable' : 'enable'}`}>
          <button>{apiKey.disabledAt === null ? 'Disable' : 'Enable'}</button>
        </form>
      </div>
      {apiKey.description !== null && <p>{apiKey.description}</p>}
      <dl class="facts">
        <dt>Secret</dt>
        <dd>
          <code>{apiKey.prefix}</code>
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={apiKey.createdAt} now={now} />
        </dd>
        <dt>Expires</dt>
        <dd>
          <Time at={apiKey.expiresAt} now={now} />
        </dd>
        <dt>Last used</dt>
        <dd>
          <Time at={apiKey.lastUsedAt} now={now} />
        </dd>
      </dl>
    </>
  );
}
