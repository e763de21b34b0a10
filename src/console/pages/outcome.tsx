import type { Context, Hono } from 'hono';
import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { BearerEnv, SeenOrigin } from '../../http/index.ts';
import type { Sessions } from '../../keys/authentication/index.ts';
import type { Assets } from '../assets.ts';
import { Layout } from '../parts/layout.tsx';
import { type OutcomePage, SentForm } from '../sent-form.tsx';
import { requireOwnPage } from '../session-auth.ts';
import { OUTCOMES, rootFrom, seeOther, sendPage, type Visit } from '../visit.tsx';

/** What showing what forms led to takes. */
interface OutcomeParts {
  readonly assets: Assets;
  readonly sessions: Sessions;
  readonly seenBy: (c: Context) => SeenOrigin;
  /** Lets somebody in; undefined if their session has ended. */
  readonly enter: (c: Context, root: string) => Promise<Visit | undefined>;
  /** Answers, or says what went wrong. */
  readonly guarded: (c: Context, root: string, answer: () => Promise<Response>) => Promise<Response>;
}

/**
 * Adds the pages that forms lead to, of which those with a secret are shown until somebody has stored it, or leaves.
 * Who has just rotated the key that they have signed in with sees them, too.
 */
export function addOutcomes(app: Hono<BearerEnv>, path: string, parts: OutcomeParts): void {
  const { assets, sessions, seenBy, enter, guarded } = parts;
  const root = rootFrom(`${OUTCOMES}:id`);
  const idIn = (c: Context) => c.req.param('id') ?? '';
  const senderOf = (c: Context) => ({ c, sessions, seen: seenBy(c) });
  const show = async (c: Context, title: string, content: Child, status = 200): Promise<Response> => {
    const visit = await enter(c, root);
    if (visit) return visit.page(title, content, status);
    return sendPage(c, <Layout {...{ title, root, assets }}>{content}</Layout>, status);
  };

  app.get(`${path}/${OUTCOMES}:id`, (c) =>
    guarded(c, root, async () => {
      requireOwnPage(c);
      const [id, sender] = [idIn(c), senderOf(c)];
      await SentForm.leave(sender, id).catch(() => {});
      const page = await SentForm.behind(id, sender)?.open();
      if (page) return show(c, page.title, <Shown page={page} action={`${id}/stored`} />);
      const hadSecret = await SentForm.wasSeen(id, sender);
      return show(c, 'No longer available', <Gone root={root} hadSecret={hadSecret} />, 410);
    }),
  );
  app.post(`${path}/${OUTCOMES}:id/stored`, (c) =>
    guarded(c, `${root}../`, async () => {
      const sent = SentForm.behind(idIn(c), senderOf(c));
      const page = await sent?.open();
      await sent?.close();
      return seeOther(c, `${root}../${page?.next ?? ''}`);
    }),
  );
}

function Shown({ page: { html, isSecret }, action }: { page: OutcomePage; action: string }) {
  if (!isSecret) return raw(html);
  return (
    <div data-unread>
      {raw(html)}
      <form method="post" action={action} class="actions">
        <button class="primary">I have stored it</button>
      </form>
    </div>
  );
}

function Gone({ root, hadSecret }: { root: string; hadSecret: boolean }) {
  return (
    <div class="narrow">
      <h1>No longer available</h1>
      <p>
        {hadSecret
          ? 'A secret is shown only once.'
          : 'This page was available for ten minutes. A secret on it is not shown again.'}{' '}
        If you did not store it, rotate the key to get a new one.
      </p>
      <p>
        <a href={`${root}keys`}>All keys</a>
      </p>
    </div>
  );
}
