import type { Pages } from '../../page-routes.ts';
import { OnceOnly } from '../../sent-form.tsx';
import { BackToKey, type KeyVisit, withKey } from './with-key.tsx';

const SWITCH = `mutation Switch($id: ID!, $enabled: Boolean!) {
  setApiKeyEnabled(id: $id, enabled: $enabled) { id }
}`;

/** Adds what enables and disables a key. */
export function addSwitching(pages: Pages): void {
  for (const [path, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    pages.post(`keys/:id/${path}`, async (visit) => {
      const id = visit.param('id');
      await visit.ask(SWITCH, { id, enabled });
      return visit.seeOther(`keys/${id}?done=${path}d`);
    });
  pages.get(
    'keys/:id/disable',
    withKey(async (here) => here.visit.page(`Disable ${here.shown.name}`, <DisablePage here={here} />), 'DISABLE'),
  );
}

function DisablePage({ here }: { here: KeyVisit }) {
  const { shown, base, rights } = here;
  return (
    <div class="narrow">
      <BackToKey here={here} />
      <h1>Disable {shown.name}?</h1>
      <p>
        It is refused from the next request on, and so are all its child keys.{' '}
        {rights.endsSession
          ? `You have signed in with ${rights.isSelf ? 'this key' : 'a child key of it'}: you will be signed out, ` +
            'and cannot enable it again. Another key or the command line can.'
          : rights.whyNot('ENABLE') !== undefined &&
            `You cannot enable it again: ${rights.whyNot('ENABLE')} Another key or the command line can.`}
      </p>
      <form method="post" action={`${base}/disable`} class="actions">
        <OnceOnly />
        <button class="danger">Disable</button>
        <a class="button" href={base}>
          Cancel
        </a>
      </form>
    </div>
  );
}
