import type { FeatureContext } from '../../feature.ts';
import type { HttpApp } from '../../http/index.ts';
import { oauthOf } from '../consent/oauth/oauth.ts';
import { Sessions } from '../sessions/index.ts';
import { peopleOf } from '../people/people-sign-in.ts';
import { addPages } from './add-console.ts';
import { formsOfPrimary } from './forms-of-workers.ts';
import { RecentForms, type SentForms } from './recent-forms.ts';

/** Forms sent to each app. An app that replaces another takes them over. */
const forms = new WeakMap<object, SentForms>();

/** Adds the console, if it is enabled, and the approval pages. */
export function addConsole(app: HttpApp, context: FeatureContext): void {
  const { keys, config, console: hasConsole, commands, credentials, places, isWorker, replaces } = context;
  const { authenticator, clock } = keys;
  const own = (replaces && forms.get(replaces)) ?? (isWorker ? formsOfPrimary() : new RecentForms(clock));
  forms.set(app, own);
  if (hasConsole) places.links.push({ path: '/console', says: 'People sign in at the' });
  addPages(app, {
    ...oauthOf(context),
    hasConsole,
    title: config?.title,
    commands,
    credentials,
    keys,
    sessions: keys.feature(Sessions),
    authenticator,
    people: config && peopleOf(context),
    failedCredentials: context.failedCredentials,
    pipeline: places.graphql!.pipeline,
    forms: own,
    clock,
  });
}
