import cluster, { type Worker } from 'node:cluster';
import { type AnsweredForm, type FormAnswer, RecentForms, type SentForms } from './recent-forms.ts';

/** A message to the primary about a form of the console: it was sent, or is answered. */
type FormMessage = { form: 'sent'; id: string; ask: number } | ({ form: 'answered'; id: string } & AnsweredForm);

/** The primary's reply to a worker that received a form. */
interface FormReply {
  /** Tells the worker to do it, or gives it the answer. */
  formed: 'turn' | { readonly answer: FormAnswer | undefined };
  ask: number;
}

/** Keeps answers to console forms in the primary, because a second click can reach any worker. */
export function keepForms(): void {
  const forms = new RecentForms();
  const running = new Map<string, { readonly worker: Worker; readonly finish: (answered: AnsweredForm) => void }>();
  const take = async (worker: Worker, message: FormMessage) => {
    const { id } = message;
    if (message.form === 'answered') return running.get(id)?.finish(message);
    const { ask } = message;
    const reply = (formed: FormReply['formed']) =>
      worker.isConnected() && worker.send({ formed, ask } satisfies FormReply, () => {});
    let isTurn = false;
    const answer = await forms.once(id, () => {
      isTurn = true;
      const { promise, resolve } = Promise.withResolvers<AnsweredForm>();
      running.set(id, { worker, finish: resolve });
      if (!worker.isConnected()) resolve(UNKNOWN);
      reply('turn');
      return promise.finally(() => running.delete(id));
    });
    if (!isTurn) reply({ answer });
  };
  cluster.on('message', (worker, message: object) => {
    if ('form' in message) void take(worker, message as FormMessage);
  });
  cluster.on('exit', (exited) => {
    for (const { worker, finish } of running.values()) if (worker === exited) finish(UNKNOWN);
  });
}

/** The answer is lost with its worker. */
const UNKNOWN: AnsweredForm = { answer: undefined, isDone: false };

/** Console forms as a worker sees them, kept by the primary. */
export function formsOfPrimary(): SentForms {
  const asking = new Map<number, (reply: FormReply['formed']) => void>();
  let asked = 0;
  const send = (message: FormMessage) => process.connected && process.send?.(message, undefined, undefined, () => {});
  process.on('message', (message: Partial<FormReply>) => {
    const { formed, ask = 0 } = message;
    if (formed === undefined) return;
    asking.get(ask)?.(formed);
    asking.delete(ask);
  });
  return {
    async once(id, work) {
      asked += 1;
      const { promise, resolve } = Promise.withResolvers<FormReply['formed']>();
      asking.set(asked, resolve);
      send({ form: 'sent', id, ask: asked });
      const formed = await promise;
      if (formed !== 'turn') return formed.answer;
      let answered = UNKNOWN;
      try {
        answered = await work();
        return answered.answer;
      } finally {
        send({ form: 'answered', id, ...answered });
      }
    },
  };
}
