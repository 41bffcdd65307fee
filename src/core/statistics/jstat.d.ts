declare module "jstat" {
  export const jStat: { readonly studentt: { inv(probability: number, degreesOfFreedom: number): number } };
}
