import { randomUUID } from 'node:crypto';

/** The port of the table. */
export const DEPLOYS = { name: 'deploys' };

/** The time before which requests are forgotten, in milliseconds since 1970. */
const oldest = (keys, now = Date.now()) => now - (keys.catalog.added.approval?.wait ?? 60) * 60_000;
const nameOf = (caller) => caller.apiKey?.name ?? 'operator';
const refusal = (code, message) => Object.assign(new Error(message), { code });

export const feature = {
  name: 'svc-api-approval',
  resources: ['DEPLOY'],
  config: {
    sections: {
      approval: async () => {
        const v = await import('valibot');
        const wait = v.pipe(v.number(), v.minValue(1, 'must be at least 1 minute'));
        return { description: 'Approval of deploys.', schema: v.strictObject({ wait: v.optional(wait, 60) }) };
      },
    },
  },
  store: async () => (await import('./store.js')).store,
  errors: {
    DEPLOY_REFUSED: {
      status: 403,
      meaning: 'A deploy cannot be approved.',
      causes: ['it does not exist, was forgotten or is already approved', 'the same key has asked for it'],
      remedy: 'List deploys with `deploy list`, and approve with another key.',
    },
  },
  operations: {
    deploys: {
      root: 'Query',
      needs: 'DEPLOY:READ_ANY',
      does: 'Deploys that were asked for, oldest first.',
      run: (keys) => keys.port(DEPLOYS).list(oldest(keys)),
    },
    askForDeploy: {
      root: 'Mutation',
      needs: 'DEPLOY:CREATE_ANY',
      does: 'Asks for approval of a deploy.',
      run: (keys, { what }, actor) =>
        keys.write(async (transaction) => {
          const { now, caller } = transaction;
          const asked = { id: randomUUID(), what, asker: nameOf(caller), approver: null };
          const deploys = transaction.port(DEPLOYS);
          await deploys.forget(oldest(keys, now));
          await deploys.add({ ...asked, at: now, key_id: caller.apiKey?.id ?? null });
          return asked;
        }, actor),
    },
    approveDeploy: {
      root: 'Mutation',
      needs: 'DEPLOY:UPDATE_ANY',
      does: 'Approves a deploy that another key has asked for.',
      run: (keys, { id }, actor) =>
        keys.write(async (transaction) => {
          const { now, caller } = transaction;
          const deploys = transaction.port(DEPLOYS);
          const deploy = (await deploys.list(oldest(keys, now))).find((each) => each.id === id && !each.approver);
          if (!deploy) throw refusal('DEPLOY_REFUSED', `No deploy with the id "${id}" waits.`);
          if (caller.apiKey && caller.apiKey.id === (await deploys.keyOf(id)))
            throw refusal('DEPLOY_REFUSED', `"${nameOf(caller)}" has asked for this deploy itself.`);
          await deploys.approve(id, nameOf(caller));
          return { ...deploy, approver: nameOf(caller) };
        }, actor),
    },
  },
  schema: () => import('./schema.js'),
  remote: () => import('./remote.js'),
  routes: async (app, { bearer, keys }) => {
    const escaped = (text) => text.replace(/[&<]/g, (character) => `&#${character.codePointAt(0)};`);
    app.get('/deploys', bearer('/deploys', 'DEPLOY:READ_ANY').auth, async (context) => {
      const deploys = await keys.port(DEPLOYS).list(oldest(keys));
      const waiting = deploys.filter(({ approver }) => !approver);
      const items = waiting.map(({ id, what, asker }) => `<li>${escaped(`${what}, for ${asker}: ${id}`)}</li>`);
      return context.html(`<!doctype html><title>Deploys</title><h1>Deploys that wait</h1><ul>${items.join('')}</ul>`);
    });
  },
};

/** @type {import('svc-api/feature').FeatureHook} */
const hook = async () => feature;
export default hook;
