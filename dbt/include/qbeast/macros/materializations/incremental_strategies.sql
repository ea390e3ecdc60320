{# dbt-spark knows four strategies and refuses every other name. Here a project's own strategy,
   a macro called get_incremental_<name>_sql, works as on other adapters. #}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
  {% if raw_strategy == 'merge' and file_format not in ['delta', 'iceberg', 'hudi'] %}
    {% do exceptions.raise_compiler_error(
        "incremental_strategy 'merge' needs file_format delta, iceberg or hudi, not " ~ file_format) %}
  {% endif %}
  {% if raw_strategy not in ['append', 'merge', 'insert_overwrite', 'microbatch'] %}
    {# Raises when there is no such macro. #}
    {% do adapter.get_incremental_strategy_macro(context, raw_strategy) %}
  {% endif %}
  {% do return(raw_strategy) %}
{% endmacro %}


{% macro dbt_spark_get_incremental_sql(strategy, source, target, existing, unique_key, incremental_predicates) %}
  {% if strategy == 'append' %}
    {{ return(get_insert_into_sql(source, target)) }}
  {% elif strategy == 'merge' %}
    {{ return(get_merge_sql(target, source, unique_key, none, incremental_predicates)) }}
  {% elif strategy in ['insert_overwrite', 'microbatch'] %}
    {% if strategy == 'microbatch' and not config.get('partition_by') %}
      {% do exceptions.raise_compiler_error(
          "incremental_strategy 'microbatch' needs partition_by: a column with one value for each "
          ~ config.get('batch_size')) %}
    {% endif %}
    {{ return(get_insert_overwrite_sql(source, target, existing)) }}
  {% endif %}
  {% set strategy_sql = adapter.get_incremental_strategy_macro(context, strategy) %}
  {{ return(strategy_sql({
      'target_relation': target,
      'temp_relation': source,
      'unique_key': unique_key,
      'dest_columns': adapter.get_columns_in_relation(target),
      'incremental_predicates': incremental_predicates})) }}
{% endmacro %}
