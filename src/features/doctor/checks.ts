import type { CheckAnswer, CheckContext, DoctorCheck } from '../../feature.ts';
import { isAdded } from '../../keys/added/index.ts';
import { inTime, list, oneOf, options, printable, recordOf, required, text, UNIT_MS } from '../../keys/basics/index.ts';
import { checked, failure, type Finding } from './inspection/finding.ts';

type Context = Omit<CheckContext, 'signal'>;

/** Runs the checks of features. */
export async function checkFeatures(context: Context): Promise<Finding[]> {
  const findings: Finding[] = [];
  const { signal } = new AbortController();
  for (const feature of context.features)
    for (const check of feature.checks ?? [])
      findings.push(
        ...(isAdded(feature)
          ? await checkOfPlugin(feature.name, check, context)
          : await checked(check.name, async () => findingsOf(check, await check.run({ ...context, signal })))),
      );
  return findings;
}

/** Runs a plugin's check. If it fails, the finding names the plugin. @param limitMs the time limit, in milliseconds */
export async function checkOfPlugin(
  plugin: string,
  check: DoctorCheck,
  context: Context,
  limitMs: number = UNIT_MS.m,
): Promise<Finding[]> {
  const late = new AbortController();
  try {
    const answers = await inTime(check.run({ ...context, signal: late.signal }), limitMs);
    return findingsOf(check, valid(answers));
  } catch (error) {
    const reason = printable(error instanceof Error ? error.message : String(error), 300);
    return [
      failure(
        check.name,
        `The check of the plugin ${printable(plugin)} failed. ${reason}`,
        `Update the plugin, or tell its author. To do without it: svc-api plugins uninstall ${printable(plugin)}.`,
      ),
    ];
  } finally {
    late.abort();
  }
}

function findingsOf({ name }: DoctorCheck, answers: readonly CheckAnswer[]): Finding[] {
  return answers.map((answer) => ({
    check: name,
    status: answer.status,
    message: answer.message,
    remedy: answer.status === 'ok' ? null : answer.remedy,
    ...(answer.items && { items: answer.items }),
  }));
}

const ANSWERS = list(
  options<{ status: unknown; message: unknown; remedy?: unknown; items?: unknown }>({
    status: required(oneOf('ok', 'warning', 'failure')),
    message: required(text),
    remedy: text,
    items: list(
      options<{ text: unknown; json: unknown }>({ text: required(text), json: required(recordOf(() => undefined)) }),
    ),
  }),
);

/** @throws Error for answers of another form */
function valid(answers: readonly CheckAnswer[]): readonly CheckAnswer[] {
  const problem = ANSWERS(answers, 'answers');
  if (problem !== undefined) throw new Error(`It gave no valid answers. ${problem}`);
  if (answers.some((answer) => answer.status !== 'ok' && answer.remedy === undefined))
    throw new Error('It gave a warning or a failure without a "remedy".');
  return answers;
}
