SELECT date_trunc('month', date) AS month, category, count(*) AS recalls
FROM 'recalls.parquet'
WHERE date IS NOT NULL
GROUP BY ALL
ORDER BY month, category;
