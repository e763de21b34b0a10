import type { Context } from 'hono';
import type { FeatureContext } from '../../feature.ts';
import { type HttpApp, Issuer, originOf } from '../../http/index.ts';
import { Networks } from '../../keys/basics/index.ts';
import { doorOf, SeenOrigin, Sessions, type SignIn } from '../sessions/index.ts';
import { peopleOf } from '../people/people-sign-in.ts';
import { createRouter } from '../routes/index.ts';
import { byRoutes } from './access.ts';
import { Discovery } from './discovery.ts';
import { addForwardAuth } from './forward-auth.ts';

/** Adds the endpoints that proxies ask, and the pages to sign in on the hosts that they guard. */
export async function addGuard(app: HttpApp, context: FeatureContext): Promise<void> {
  const { config, keys, places, publicUrl, trust } = context;
  const router = createRouter(config?.routes ?? []);
  places.guarded = new Discovery(byRoutes(router), publicUrl);
  addForwardAuth(app, context, {
    authenticator: keys.authenticator,
    catalog: keys.catalog,
    router,
    trust: new Networks(trust),
    signIn: await signInFor(app, context),
  });
}

async function signInFor(app: HttpApp, context: FeatureContext): Promise<SignIn | undefined> {
  const { config, keys, trust, refusals, failures } = context;
  const isOn = config?.signIn === 'on';
  const loadDoor = doorOf(context.features, isOn);
  if (!isOn || !loadDoor) return undefined;
  const { authenticator } = keys;
  const sessions = keys.feature(Sessions);
  const people = peopleOf(context);
  const address = new Issuer(undefined, trust);
  const door = await loadDoor();
  const pages = door.add(app, {
    title: config.title,
    sessions,
    authenticator,
    people,
    check: context.formCheck,
    refusals,
    failures,
    seenBy: (c: Context) => new SeenOrigin(address.of(c)),
    countFailure: (c: Context) => context.failedCredentials?.add(originOf(c, context)),
  });
  return {
    sessions,
    // The headers that a proxy passes on with its question are not known.
    people: people && { goesOn: (apiKey) => people.goesOn(apiKey) },
    pages: async () => pages,
  };
}
