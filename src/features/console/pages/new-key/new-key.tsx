import { OperationFailed } from '../../operations.ts';
import { KEY_FIELD } from '../../session-auth.ts';
import type { Pages, Visit, VisitHandler } from '../../visit.tsx';
import { permissionsOf } from '../../parts/grants.ts';
import { Done, PREVIOUS_SECRET, Problem, Secret, Time } from '../../parts/notice.tsx';
import { LABELS, RESTRICTIONS } from '../../parts/key-texts.tsx';
import { type AskedGrantable, type Means, meansOf } from '../grantable.ts';
import type { ShownKey } from '../key/shown-key.ts';
import {
  type Draft,
  draftIn,
  draftLike,
  emptyDraft,
  hasDraft,
  inputOf,
  KEPT,
  NewKeyForm,
  type Original,
  type Refused,
  REPLACE,
  type NameConflict,
} from './form.tsx';
import { askReach, HowToUse } from './how-to-use.tsx';
import { PRESET, withPreset } from './presets.ts';
import { type Preview, PREVIEW, PreviewPage, type Replaced, replacedIn } from './preview.tsx';

/** Fields of a created key. */
const CREATE = `mutation Create($input: CreateApiKeyInput!) {
  createApiKey(input: $input) {
    key
    apiKey { id name expiresAt effectivePermissions { resource actions } }
    replaced { id }
  }
}`;

interface Created {
  /** The secret, which is shown once. */
  readonly key: string;
  readonly apiKey: Pick<ShownKey, 'id' | 'name' | 'expiresAt' | 'effectivePermissions'>;
  readonly replaced: readonly object[];
}

/** Shows the secret, once, and how to use it. */
function CreatedPage({
  visit,
  created: { key, apiKey, replaced },
  reach,
}: {
  visit: Visit;
  created: Created;
  reach: Parameters<typeof HowToUse>[0]['reach'];
}) {
  return (
    <div class="medium">
      <h1>{apiKey.name} created</h1>
      <Done>
        <p>
          Store this secret now: it is shown only once.
          {replaced.length > 0 &&
            ` ${replaced.length === 1 ? 'One key was' : `${replaced.length} keys were`} deleted to replace it.`}
        </p>
      </Done>
      <Secret of={apiKey.name} secret={key} />
      <p>
        {apiKey.expiresAt === null ? (
          'It never expires.'
        ) : (
          <>
            It expires <Time at={apiKey.expiresAt} now={visit.now} />.
          </>
        )}{' '}
        <a href={`${visit.root}keys/${apiKey.id}`}>Open the key</a>
        {' · '}
        <a href={`${visit.root}keys`}>All keys</a>
      </p>
      <HowToUse visit={visit} permissions={apiKey.effectivePermissions} reach={reach} />
    </div>
  );
}

const ORIGINAL = `query Original($id: ID!) { apiKey(id: $id) { name ${LABELS} grants ${RESTRICTIONS} } }`;
const NAMED = `query Named($name: String!) { apiKey(name: $name) { id createdBy createdAt } }`;
const REPLACED = `query Replaced($id: ID!) { apiKey(id: $id) { lastUsedAt } }`;

/** A key of the same name that is newer than this may come from the same form, sent twice. */
const RELOAD_MS = 600_000;

/** Adds the pages for creating a key: a form, a preview, and the secret. Only the last one writes anything. */
export function addNewKey(pages: Pages): void {
  pages.get(
    'keys/new',
    withGrantable(async (here) => {
      const { visit, bounds } = here;
      const from = visit.query('from');
      const linked = new URL(visit.c.req.url).searchParams;
      if (from === undefined && !hasDraft(linked)) return showForm(here, emptyDraft(bounds));
      if (from === undefined) {
        const note = linked.has(KEPT)
          ? 'Your session had ended. Your form is as you left it.'
          : 'This form was filled in by a link. Check it before you create the key.';
        const limited = limitedTo(here.grantable, draftIn(linked, bounds), note);
        return showForm(here, limited.draft, { note: limited.note });
      }
      const original = await visit.ask<Original | null>(ORIGINAL, { id: from });
      if (!original) return showForm(here, emptyDraft(bounds), { note: 'That key no longer exists.' });
      return showForm(here, draftLike(original, bounds), { likeName: original.name });
    }),
  );
  pages.post(
    'keys/new',
    withGrantable(async (here) => {
      const form = await here.visit.form();
      const draft = draftIn(form, here.bounds);
      const step = form.get('step');
      if (step === 'change') return showForm(here, draft);
      if (step?.startsWith(PRESET)) return showForm(here, withPreset(draft, step, here.grantable));
      if (step === 'create') return create(here, draft);
      return preview(here, { ...draft, replaces: step === 'replace' ? REPLACE : '' });
    }),
  );
}

/** Answers people who are allowed to create keys, and tells others why they are not. */
function withGrantable(answer: (here: Means) => Promise<Response>): VisitHandler {
  return async (visit) => {
    if (!visit.may('API_KEY:CREATE_OWN'))
      return refuse(visit, 'Your key cannot create keys: it lacks API_KEY:CREATE_OWN.');
    const means = await meansOf(visit);
    return means.grantable.reason === null ? answer(means) : refuse(visit, means.grantable.reason);
  };
}

/** @param refused why the previewed key was not created, and the status of the page */
async function preview(
  here: Means,
  draft: Draft,
  refused?: { note: string; keyProblem?: string | undefined; status: number },
): Promise<Response> {
  const { visit, bounds } = here;
  const made = inputOf(draft, bounds);
  if ('refused' in made) return showForm(here, draft, made);
  try {
    const previewed = await visit.ask<Preview>(PREVIEW, made);
    const replaced = await findReplaced(visit, previewed);
    const content = { visit, draft, preview: previewed, replaced, ...refused };
    return await visit.page('Preview', <PreviewPage {...content} />, refused?.status);
  } catch (error) {
    return showRefused(here, draft, { error, isMaybeOwn: false });
  }
}

async function create(here: Means, draft: Draft): Promise<Response> {
  const { visit, bounds } = here;
  const made = inputOf(draft, bounds);
  if ('refused' in made) return showForm(here, draft, made);
  try {
    if (draft.replaces !== '') {
      // Delete only what was shown: a page opened again must not replace the key that it just created.
      if (replacedIn(await visit.ask(PREVIEW, made)) !== draft.replaces)
        return await preview(here, draft, {
          status: 409,
          note: 'The keys to replace have changed since you opened this page. Nothing was done: check them again.',
        });
    }
    const created = await visit.ask<Created>(CREATE, made);
    // The key exists now: an error here must not hide its secret.
    const reach = await askReach(visit, created.apiKey.id).catch(() => []);
    const page = <CreatedPage visit={visit} created={created} reach={reach} />;
    return await visit.showSecret('Key created', `keys/${created.apiKey.id}`, page);
  } catch (error) {
    const keyProblem = error instanceof OperationFailed ? error.problems.get(KEY_FIELD) : undefined;
    if (keyProblem === undefined) return showRefused(here, draft, { error, isMaybeOwn: true });
    const { pageStatus: status } = error as OperationFailed;
    return preview(here, draft, { note: 'Enter your key to create it.', keyProblem, status });
  }
}

async function showForm(
  { visit, grantable, bounds }: Means,
  draft: Draft,
  {
    refused,
    status,
    note,
    likeName,
  }: { refused?: Refused; status?: number; note?: string; likeName?: string | undefined } = {},
): Promise<Response> {
  const likeNote = `Copied from the key ${likeName}, except for its name and expiry.`;
  const shown = likeName === undefined ? { draft, note } : limitedTo(grantable, draft, likeNote);
  const content = { root: visit.root, grantable, bounds, refused, ...shown };
  return visit.page('New key', <NewKeyForm {...content} />, status ?? (refused ? 400 : 200));
}

/** A draft from elsewhere, without the grants that the person cannot give. @param note where it comes from */
function limitedTo(grantable: AskedGrantable, draft: Draft, note: string): { draft: Draft; note: string } {
  const [roles, permissions] = [grantable.roles.map(({ role }) => role), permissionsOf(grantable.permissions)];
  const kept = {
    ...draft,
    roles: draft.roles.filter((role) => roles.includes(role)),
    permissions: draft.permissions.filter((permission) => permissions.includes(permission)),
  };
  const lost = draft.roles.length + draft.permissions.length - kept.roles.length - kept.permissions.length;
  const left = lost === 0 ? '' : ` Left out because your key cannot grant them: ${lost} of its permissions and roles.`;
  return { draft: kept, note: note + left };
}

/** Shows the form again with its problems. @throws any error that is not a refusal of an operation */
async function showRefused(
  here: Means,
  draft: Draft,
  { error, isMaybeOwn }: { error: unknown; isMaybeOwn: boolean },
): Promise<Response> {
  if (!(error instanceof OperationFailed)) throw error;
  const { code, problems, reason, pageStatus } = error;
  if (code === 'NAME_CONFUSABLE') {
    const refused = { problems: new Map([['name', reason]]) };
    return showForm(here, draft, { refused, status: pageStatus });
  }
  const taken = code === 'NAME_TAKEN' ? await findTaken(here.visit, draft.name, isMaybeOwn) : undefined;
  const message = problems.size > 0 ? undefined : reason;
  return showForm(here, draft, { refused: { problems, message, taken }, status: pageStatus });
}

async function findTaken(visit: Visit, name: string, isMaybeOwn: boolean): Promise<NameConflict> {
  if (!visit.may('API_KEY:READ_OWN')) return { id: undefined, isMaybeOwn };
  const key = await visit.ask<{ id: string; createdBy: string | null; createdAt: string } | null>(NAMED, { name });
  const isRecent = key !== null && visit.now - Date.parse(key.createdAt) < RELOAD_MS;
  return { id: key?.id, isMaybeOwn: isMaybeOwn && isRecent && key.createdBy === visit.principal.apiKey.id };
}

async function findReplaced(visit: Visit, { replaced: [first] }: Preview): Promise<Replaced | undefined> {
  if (!first || !visit.may('API_KEY:READ_OWN')) return undefined;
  return (await visit.ask<Replaced | null>(REPLACED, { id: first.id })) ?? undefined;
}

function refuse(visit: Visit, reason: string): Promise<Response> {
  return visit.page(
    'New key',
    <>
      <h1>New key</h1>
      <Problem>{visit.principal.secret === 'previous' ? PREVIOUS_SECRET : reason}</Problem>
    </>,
    403,
  );
}
