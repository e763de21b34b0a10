import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import { Problem } from '../../parts/notice.tsx';
import { NewSecretPage, type Rotated } from './new-secret.tsx';
import { type GivenRotation, NOTHING_GIVEN, readRotationForm, StartRotation } from './rotation-form.tsx';
import { RotationSteps } from './rotation-state.tsx';
import { BackToKey, type KeyVisit, withKey } from './with-key.tsx';

const ROTATE = `mutation Rotate($input: RotateApiKeyInput!) {
  rotateApiKey(input: $input) { key apiKey { prefix rotation { previousPrefix previousEndsAt } } disabled { id name } }
}`;

/** What ends a rotation, or gets on with it: its address, its field of GraphQL, and what is said afterwards. */
const STEPS = [
  ['activate', 'activateApiKeyRotation', 'activated'],
  ['finish', 'finishApiKeyRotation', 'finished'],
  ['roll-back', 'rollBackApiKeyRotation', 'rolled-back'],
] as const;

/** Adds the pages that give a key another secret, step by step. */
export function addRotation(pages: Pages): void {
  pages.get(
    'keys/:id/rotation',
    withKey((here) => showRotation(here), 'UPDATE'),
  );
  pages.post(
    'keys/:id/rotation',
    withKey(async (here) => {
      const { visit, shown } = here;
      const given = readRotationForm(await visit.form(), visit.now);
      if (given.problems.size > 0) return showRotation(here, given, undefined, 422);
      try {
        const { rotateApiKey } = await visit.ask<{ rotateApiKey: Rotated }>(ROTATE, {
          input: { id: shown.id, ...given.input },
        });
        const page = { title: 'New secret', next: `keys/${shown.id}`, isSecret: true };
        return await visit.showOnce(page, (root) => <NewSecretPage here={here} root={root} rotated={rotateApiKey} />);
      } catch (error) {
        if (!(error instanceof OperationFailed)) throw error;
        const { problems, reason, pageStatus } = error;
        return showRotation(here, { ...given, problems }, problems.size > 0 ? undefined : reason, pageStatus);
      }
    }, 'UPDATE'),
  );
  for (const [path, field, done] of STEPS)
    pages.post(
      `keys/:id/rotation/${path}`,
      withKey(async (here) => {
        const { visit, shown } = here;
        try {
          await visit.ask(`mutation Step($id: ID!) { ${field}(id: $id) { id } }`, { id: shown.id });
        } catch (error) {
          if (error instanceof OperationFailed)
            return showRotation(here, NOTHING_GIVEN, error.reason, error.pageStatus);
          throw error;
        }
        return visit.seeOther(`keys/${shown.id}?done=${done}`);
      }, 'UPDATE'),
    );
}

function showRotation(
  here: KeyVisit,
  given: GivenRotation = NOTHING_GIVEN,
  problem?: string,
  status = 200,
): Promise<Response> {
  const { rotation, name } = here.shown;
  return here.visit.page(
    `Rotate ${name}`,
    <div class="medium">
      <BackToKey here={here} />
      <h1>{rotation ? 'Rotation under way' : 'Give it a new secret'}</h1>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {rotation ? (
        <RotationSteps here={here} rotation={rotation} />
      ) : here.rights.may('ROTATE') ? (
        <StartRotation here={here} given={given} />
      ) : (
        <p>A new secret can do all that this key may do. {here.rights.whyNot('ROTATE')}</p>
      )}
    </div>,
    status,
  );
}
